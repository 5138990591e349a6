// What one unit, or the program around the loops, has of a bus: its consumers end with it, and it knows
// whether its handlers are at work. Addresses of manycore's own are not for it.

import type { Duplex } from 'node:stream';
import { CodedError } from '../errors.js';
import { string } from '../internal/index.js';
import { BusAddress } from './address.js';
import type { BusCodec, Registration } from './codecs.js';
import type { Consumer } from './consumer.js';
import type { Interceptors } from './interceptors.js';
import type { BusHeaders, BusMessage, ReplyRequestOptions } from './message.js';
import { reservedPrefix } from './reserved.js';
import type { StreamHandler, StreamOptions } from './streams.js';
import type { Bus, BusStats, ConsumerOptions, Handler, SendOptions } from './types.js';

export class ScopedBus implements Bus {
  readonly #bus: Bus;
  readonly #consumers = new Set<Consumer>();
  readonly #streams = new Set<Duplex>();
  readonly #registrations = new Set<Registration>();
  readonly #atWork = new Set<Promise<unknown>>();
  #isEnded = false;

  /** @internal */
  constructor(bus: Bus) {
    this.#bus = bus;
  }

  /** Of the whole loop. */
  get stats(): BusStats {
    return this.#bus.stats;
  }

  consumer<Body = unknown>(
    address: string,
    handler: Handler<Body>,
    options?: ConsumerOptions,
  ): Consumer {
    this.#checkLive(address);
    const noted = typeof handler === 'function' ? this.#noted(handler) : handler;
    return this.#added(this.#bus.consumer(address, noted, options));
  }

  #checkLive(address: string): void {
    this.#check(address);
    if (!this.#isEnded) return;
    throw new CodedError('BUS_CLOSED', 'the unit has ended: it can have no consumers any more');
  }

  #added(consumer: Consumer): Consumer {
    for (const each of this.#consumers) if (each.isClosed) this.#consumers.delete(each);
    this.#consumers.add(consumer);
    return consumer;
  }

  /** As `handler`, of which is known when it has ended. */
  #noted<Body>(handler: Handler<Body>): Handler<Body> {
    return (message) => {
      const result = handler(message);
      if (result instanceof Promise) this.#note(result);
      return result;
    };
  }

  #note(promise: Promise<unknown>): void {
    this.#atWork.add(promise);
    const over = (): void => {
      this.#atWork.delete(promise);
    };
    promise.then(over, over);
  }

  publish(address: string, body: unknown, options?: SendOptions): boolean {
    this.#check(address);
    return this.#bus.publish(address, body, options);
  }

  send(address: string, body: unknown, options?: SendOptions): boolean {
    this.#check(address);
    return this.#bus.send(address, body, options);
  }

  async request<Body = unknown>(
    address: string,
    body: unknown,
    options?: SendOptions & ReplyRequestOptions,
  ): Promise<BusMessage<Body>> {
    this.#check(address);
    return await this.#bus.request<Body>(address, body, options);
  }

  async openStream(address: string, options?: StreamOptions): Promise<Duplex> {
    this.#check(address);
    return this.#kept(await this.#bus.openStream(address, options));
  }

  acceptStreams(address: string, handler: StreamHandler, options?: ConsumerOptions): Consumer {
    this.#checkLive(address);
    const noted =
      typeof handler === 'function'
        ? (stream: Duplex, headers: BusHeaders) => {
            const result = handler(this.#kept(stream), headers);
            if (result instanceof Promise) this.#note(result);
            return result;
          }
        : handler;
    return this.#added(this.#bus.acceptStreams(address, noted, options));
  }

  /** Is destroyed with this at the latest. */
  #kept(stream: Duplex): Duplex {
    if (this.#isEnded) return stream.destroy();
    this.#streams.add(stream);
    stream.once('close', () => this.#streams.delete(stream));
    return stream;
  }

  address<Request = unknown, Reply = unknown>(name: string): BusAddress<Request, Reply> {
    return new BusAddress<Request, Reply>(this, string('address', name, 'a name'));
  }

  intercept(interceptors: Interceptors): Registration {
    return this.#registered(this.#bus.intercept(interceptors));
  }

  addCodec<Value, Encoded>(codec: BusCodec<Value, Encoded>): Registration {
    return this.#registered(this.#bus.addCodec(codec));
  }

  #registered(registration: Registration): Registration {
    const close = (): void => {
      this.#registrations.delete(own);
      registration.close();
    };
    const own: Registration = { close, [Symbol.dispose]: close };
    this.#registrations.add(own);
    return own;
  }

  drained(): Promise<void> {
    return this.#bus.drained();
  }

  /**
   * Ends its consumers; resolves when their handlers have ended what they had begun. What waited for
   * them goes to others. @internal
   */
  async end(): Promise<void> {
    this.#isEnded = true;
    for (const each of this.#consumers) each.close();
    await Promise.allSettled(this.#atWork);
    for (const each of this.#streams) each.destroy();
    for (const each of this.#registrations) each.close();
  }

  #check(address: string): void {
    if (typeof address !== 'string' || !address.startsWith(reservedPrefix)) return;
    throw new CodedError(
      'OPTION_INVALID',
      `address is "${address}": names that begin with "${reservedPrefix}" are manycore's own`,
    );
  }
}
