// A consumer of one address: calls its handler for one message after the other, in order of arrival, and
// buffers a bounded number while it is paused. It does not wait for promises of the handler. Not here:
// handing off to another loop, which holds the consumer and then forwards (hand-offs.ts).

import { CodedError } from '../../errors.js';
import { integer } from '../../lib/index.js';
import type { Outlet } from '../transports/peer.js';
import { Fifo } from './fifo.js';
import { type Delivery, trySettle } from './message.js';

/** May wait beyond `maxBuffered` while a consumer moves to another loop. */
export const maxHeldMessages = 100_000;

export interface ConsumerHooks {
  /** Calls the handler. */
  readonly handle: (delivery: Delivery) => void;
  /** Called when it is closed, with the messages that waited. */
  readonly onClose: (held: readonly Delivery[]) => void;
  /** Called when a message was lost; `dropped`: how many since there last was room. */
  readonly onDrop: (dropped: number) => void;
}

export class Consumer {
  readonly address: string;
  readonly #hooks: ConsumerHooks;
  readonly #maxBuffered: number;
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
  #filter: ((delivery: Delivery, from: Outlet | undefined) => boolean) | undefined;

  /** @internal */
  constructor(address: string, maxBuffered: number, hooks: ConsumerHooks) {
    this.address = address;
    this.#maxBuffered = maxBuffered;
    this.#hooks = hooks;
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

  /** Stops delivery; up to `maxBuffered` messages wait. */
  pause(): this {
    this.#demand = 0;
    return this;
  }

  /** Delivers what waits, and what comes. */
  resume(): this {
    this.#demand = Infinity;
    this.#handOn();
    return this;
  }

  /** Delivers `count` more messages, then pauses again. Throws `OPTION_INVALID`. */
  fetch(count: number): this {
    this.#demand += integer('count', count, 1, Number.MAX_SAFE_INTEGER);
    this.#handOn();
    return this;
  }

  /** Takes nothing more; waiting messages go to other consumers, or are refused. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#hooks.onClose(this.#held.takeAll());
  }

  [Symbol.dispose](): void {
    this.close();
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
    this.#isClosed = true;
    this.#divert = to;
    for (const delivery of this.#held.takeAll()) to(delivery);
  }

  /** Sets a filter, which is called first with each message; true: it has taken it. @internal */
  guard(filter: ((delivery: Delivery, from: Outlet | undefined) => boolean) | undefined): void {
    this.#filter = filter;
  }

  /** Returns false when it is closed. `from`: the peer that sent it; `undefined`: this loop. @internal */
  take(delivery: Delivery, from?: Outlet): boolean {
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
    const limit = this.#isHeld ? this.#maxBuffered + maxHeldMessages : this.#maxBuffered;
    if (this.#demand > 0 && this.#held.length === 0 && !this.#isHeld) {
      this.#demand -= 1;
      this.#hooks.handle(delivery);
    } else if (this.#held.length < limit) {
      this.#held.push(delivery);
    } else {
      this.drop(delivery);
    }
  }

  /** Counts the message as lost, because too many wait. @internal */
  drop(delivery: Delivery): void {
    this.#dropped += 1;
    this.#droppedInRow += 1;
    this.#hooks.onDrop(this.#droppedInRow);
    const message =
      `${this.#maxBuffered} messages to ${this.address} wait at its consumer: ` +
      'send slower, or raise maxBuffered';
    const error = new CodedError('BUS_FULL', message);
    trySettle(delivery.waiter, this.address, { isDone: false, error });
  }

  /** A handler may call `fetch` or `resume`: the running call of this continues then. */
  #handOn(): void {
    if (this.#isHandingOn) return;
    this.#isHandingOn = true;
    while (this.#demand > 0 && !this.#isClosed && !this.#isHeld) {
      const next = this.#held.shift();
      if (next === undefined) break;
      this.#droppedInRow = 0;
      this.#demand -= 1;
      this.#hooks.handle(next);
    }
    this.#isHandingOn = false;
  }
}
