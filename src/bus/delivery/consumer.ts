// A consumer of one address: calls its handler for one message after the other, in order of arrival, and
// buffers a bounded number while it is paused. It does not wait for promises of the handler. Without a handler
// it is iterated (reader.ts). Not here: handing off to another loop, which holds the consumer and then
// forwards (hand-offs.ts).

import { CodedError } from '../../errors.js';
import { announcements, defer, integer } from '../../lib/index.js';
import { handlerError } from '../errors.js';
import type { BusParts } from '../event-bus.js';
import { messageTrace, tracedCall } from '../filters/trace.js';
import type { RemoteTransport } from '../transports/transport.js';
import { Fifo } from './fifo.js';
import { BusMessage, type Delivery, trySettle } from './message.js';
import { Reader } from './reader.js';

/** May wait beyond `maxBuffered` while a consumer moves to another loop. */
export const maxHeldMessages = 100_000;

export interface ConsumerParts {
  readonly maxBuffered: number;
  /** `undefined`: its messages are iterated. */
  readonly handler: ((message: BusMessage<never>) => unknown) | undefined;
  /** Name of the unit that it belongs to. */
  readonly unit: string | undefined;
  /** Called with each promise of the handler. */
  readonly onPromise: ((promise: Promise<unknown>) => void) | undefined;
  /** Called when it is closed, with the messages that waited. */
  readonly onClose: (consumer: Consumer, held: readonly Delivery[]) => void;
}

/** A registered consumer; one without a handler is iterated by `for await`. */
export class Consumer<Body = unknown> {
  readonly address: string;
  /** Resolves when it has ended: by `close`, with its unit, by `move` to another loop, or with the bus. */
  readonly closed: Promise<void>;
  readonly #closed = defer<void>();
  readonly #parts: ConsumerParts;
  readonly #bus: BusParts;
  readonly #handler: (message: BusMessage<never>) => unknown;
  /** Reads in place of a handler. */
  readonly #reader: Reader | undefined;
  readonly #held = new Fifo<Delivery>();
  /** The number of messages that may still be delivered. */
  #demand = Infinity;
  #dropped = 0;
  #droppedInRow = 0;
  #isClosed = false;
  #isHandingOn = false;
  #isHeld = false;
  /** Takes messages in place of the handler. */
  #divert: ((delivery: Delivery) => void) | undefined;
  /** Called first with each message; true: it has taken it. */
  #filter: ((delivery: Delivery, from: RemoteTransport | undefined) => boolean) | undefined;

  /** @internal */
  constructor(address: string, bus: BusParts, parts: ConsumerParts) {
    this.address = address;
    this.#bus = bus;
    this.#parts = parts;
    this.closed = this.#closed.promise;
    if (parts.handler === undefined) {
      const reader = new Reader({
        onWanted: () => this.#demandOf(reader),
        close: () => this.close(),
      });
      this.#reader = reader;
      this.#handler = reader.handOut;
      this.#demand = 0;
    } else {
      this.#handler = parts.handler;
    }
  }

  /** The number of messages that wait here. */
  get buffered(): number {
    return this.#held.length;
  }

  /** The number of messages that were lost here, because too many waited. */
  get dropped(): number {
    return this.#dropped;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  #demandOf(reader: Reader): void {
    this.#demand = reader.wanted;
    this.#handOn();
  }

  /**
   * Iterates over the messages of a consumer without a handler, one for each turn; up to `maxBuffered` wait.
   * Ends when the consumer is closed; leaving the loop closes it. Throws `OPTION_INVALID` where there is a
   * handler.
   */
  [Symbol.asyncIterator](): AsyncIterableIterator<BusMessage<Body>> {
    if (this.#reader !== undefined) return this.#reader;
    const text = `the consumer of ${this.address} has a handler`;
    throw new CodedError('OPTION_INVALID', `${text}: leave that out to iterate over its messages`);
  }

  #checkHandler(): void {
    if (this.#reader === undefined) return;
    const text = `the consumer of ${this.address} has no handler`;
    throw new CodedError(
      'OPTION_INVALID',
      `${text}: its messages come with the turns of for await`,
    );
  }

  /** Stops delivery; up to `maxBuffered` messages wait. Throws `OPTION_INVALID` without a handler. */
  pause(): this {
    this.#checkHandler();
    this.#demand = 0;
    return this;
  }

  /** Delivers what waits, and what comes. Throws as `pause`. */
  resume(): this {
    this.#checkHandler();
    this.#demand = Infinity;
    this.#handOn();
    return this;
  }

  /** Delivers `count` more messages, then pauses again. Throws `OPTION_INVALID`. */
  fetch(count: number): this {
    this.#checkHandler();
    this.#demand += integer('count', count, 1, Number.MAX_SAFE_INTEGER);
    this.#handOn();
    return this;
  }

  /** Takes nothing more; waiting messages go to other consumers, or are refused. */
  close(): void {
    if (this.#isClosed) return;
    this.#end();
    this.#parts.onClose(this, this.#held.takeAll());
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #end(): void {
    this.#isClosed = true;
    this.#reader?.end();
    this.#closed.resolve();
  }

  /**
   * Stops delivery until `release`, whatever the unit calls; the buffer is much larger meanwhile. @internal
   */
  hold(): void {
    this.#isHeld = true;
  }

  /** @internal */
  release(): void {
    this.#isHeld = false;
    this.#handOn();
  }

  /** From now on waiting and new messages go to `to`, and none to the handler. @internal */
  divert(to: (delivery: Delivery) => void): void {
    this.#end();
    this.#divert = to;
    for (const delivery of this.#held.takeAll()) to(delivery);
  }

  /** Sets a filter, which is called first with each message; true: it has taken it. @internal */
  guard(
    filter: ((delivery: Delivery, from: RemoteTransport | undefined) => boolean) | undefined,
  ): void {
    this.#filter = filter;
  }

  /** Takes a message of this loop for the next turn, as a `Transport`. @internal */
  deliver(message: Delivery): void {
    this.#bus.local.deliverTo(this, message);
  }

  /** @internal */
  get hasRoom(): boolean {
    return this.#bus.local.hasRoom;
  }

  /** Returns false when it is closed. `from`: the peer that sent it; `undefined`: this loop. @internal */
  take(delivery: Delivery, from?: RemoteTransport): boolean {
    if (this.#isClosed && this.#divert === undefined) return false;
    if (this.#filter?.(delivery, from)) return true;
    if (this.#divert === undefined) this.#accept(delivery);
    else this.#divert(delivery);
    return true;
  }

  /** As `take`, without the filter. @internal */
  takePast(delivery: Delivery): boolean {
    if (this.#isClosed) return false;
    this.#accept(delivery);
    return true;
  }

  #accept(delivery: Delivery): void {
    const { maxBuffered } = this.#parts;
    const limit = this.#isHeld ? maxBuffered + maxHeldMessages : maxBuffered;
    if (this.#demand > 0 && this.#held.length === 0 && !this.#isHeld) {
      this.#meet(delivery);
    } else if (this.#held.length < limit) {
      this.#held.push(delivery);
    } else {
      this.drop(delivery);
    }
  }

  /** Counts the message as lost, because too many wait. @internal */
  drop(delivery: Delivery): void {
    const { address } = this;
    this.#dropped += 1;
    this.#droppedInRow += 1;
    this.#bus.state.dropped += 1;
    if (this.#droppedInRow === 1) {
      announcements.busDropped.publish({ address, why: 'too many messages wait at its consumer' });
    }
    const message =
      `${this.#parts.maxBuffered} messages to ${address} wait at its consumer: ` +
      'send slower, or raise maxBuffered';
    const error = new CodedError('BUS_FULL', message);
    trySettle(delivery.waiter, address, { isDone: false, error });
  }

  /** A handler may call `fetch` or `resume`: the running call of this continues then. */
  #handOn(): void {
    if (this.#isHandingOn) return;
    this.#isHandingOn = true;
    while (this.#demand > 0 && !this.#isClosed && !this.#isHeld) {
      const next = this.#held.shift();
      if (next === undefined) break;
      this.#droppedInRow = 0;
      this.#meet(next);
    }
    this.#isHandingOn = false;
  }

  /** Handles a message that there is demand for; a reader keeps its demand if a filter has stopped it. */
  #meet(delivery: Delivery): void {
    this.#demand -= 1;
    this.#handle(delivery);
    if (this.#reader !== undefined) this.#demand = this.#reader.wanted;
  }

  #handle(received: Delivery): void {
    const { state, filters, requests } = this.#bus;
    state.received += 1;
    let message: BusMessage<never> | undefined;
    try {
      const delivery = filters.receive(received);
      if (delivery === undefined) return;
      message = new BusMessage<never>(delivery, requests);
      const result = messageTrace === undefined ? this.#call(message) : this.#traced(message);
      if (result instanceof Promise) this.#follow(result, message);
    } catch (error) {
      this.#failed(message ?? new BusMessage<never>(received, requests), error);
    }
  }

  #call(message: BusMessage<never>): unknown {
    return Reflect.apply(this.#handler, undefined, [message]);
  }

  #traced(message: BusMessage<never>): unknown {
    return messageTrace && tracedCall(messageTrace, message, () => this.#call(message));
  }

  #follow(result: Promise<unknown>, message: BusMessage): void {
    this.#parts.onPromise?.(result);
    result.catch((error: unknown) => this.#failed(message, error));
  }

  /** A handler threw: the error is the reply. Where no requester waits it is reported, and ends nothing. */
  #failed(message: BusMessage, cause: unknown): void {
    const error = handlerError(message.address, cause);
    if (message.isAwaited) message.failWith(error);
    else this.#bus.state.handlerFailed({ address: this.address, unit: this.#parts.unit, error });
  }
}
