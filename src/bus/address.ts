// One address of a bus, with the types of its requests and replies. Both sides take it from the same place:
// `const price = bus.address<Item, number>('price')`. The program promises the types; nothing is checked when
// a message arrives.

import { checkFunction } from '../lib/index.js';
import type { Consumer } from './delivery/consumer.js';
import type { BusMessage, ReplyRequestOptions } from './delivery/message.js';
import type { Bus, ConsumerOptions, Handler, SendOptions } from './types.js';

export class BusAddress<Request, Reply> {
  readonly name: string;
  readonly #bus: Bus;

  /** @internal */
  constructor(bus: Bus, name: string) {
    this.#bus = bus;
    this.name = name;
  }

  /** As `Bus.consumer`. */
  consumer(handler: Handler<Request>, options?: ConsumerOptions): Consumer<Request>;
  consumer(options?: ConsumerOptions): Consumer<Request>;
  consumer(given?: Handler<Request> | ConsumerOptions, more?: ConsumerOptions): Consumer<Request> {
    if (typeof given === 'function') return this.#bus.consumer(this.name, given, more);
    if (more !== undefined) checkFunction('handler', given);
    return this.#bus.consumer<Request>(this.name, given);
  }

  /** Registers a consumer that answers each request with what `handler` returns, or resolves to. */
  answer(
    handler: (body: Request, message: BusMessage<Request>) => Reply | Promise<Reply>,
    options?: ConsumerOptions,
  ): Consumer {
    checkFunction('handler', handler);
    return this.consumer(
      async (message) => message.reply(await handler(message.body, message)),
      options,
    );
  }

  /** As `Bus.publish`. */
  publish(body: Request, options?: SendOptions): boolean {
    return this.#bus.publish(this.name, body, options);
  }

  /** As `Bus.send`. */
  send(body: Request, options?: SendOptions): boolean {
    return this.#bus.send(this.name, body, options);
  }

  /** As `Bus.request`. */
  request(body: Request, options?: SendOptions & ReplyRequestOptions): Promise<BusMessage<Reply>> {
    return this.#bus.request<Reply>(this.name, body, options);
  }
}
