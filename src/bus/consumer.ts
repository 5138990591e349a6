// One who listens to an address: hands on messages one after the other, in the order in which they came,
// and holds a bounded number while it is paused. A handler that goes on later is not waited for.
// Not here: how one goes to another loop, which holds it, and then sends on what comes (hand-offs.ts).

import { CodedError } from '../errors.js';
import { integer } from '../internal/index.js';
import { Fifo } from './fifo.js';
import { type Delivery, trySettle } from './message.js';
import type { Outlet } from './peer.js';

/** More than `maxBuffered` that wait while a consumer goes to another loop. */
export const maxHeldMessages = 100_000;

export interface ConsumerHooks {
  /** Calls the handler. */
  readonly handle: (delivery: Delivery) => void;
  /** It is gone; what it held comes back. */
  readonly onClose: (held: readonly Delivery[]) => void;
  /** A message was lost; so many since there was room last. */
  readonly onDrop: (dropped: number) => void;
}

export class Consumer {
  readonly address: string;
  readonly #hooks: ConsumerHooks;
  readonly #maxBuffered: number;
  readonly #held = new Fifo<Delivery>();
  /** How many messages may be handed on. */
  #demand = Infinity;
  #dropped = 0;
  #droppedInRow = 0;
  #isClosed = false;
  #isHandingOn = false;
  #isHeld = false;
  /** Where messages go instead. */
  #divert: ((delivery: Delivery) => void) | undefined;
  /** Sees what comes first; true: it has taken it. */
  #gate: ((delivery: Delivery, from: Outlet | undefined) => boolean) | undefined;

  /** @internal */
  constructor(address: string, maxBuffered: number, hooks: ConsumerHooks) {
    this.address = address;
    this.#maxBuffered = maxBuffered;
    this.#hooks = hooks;
  }

  /** Messages that wait here. */
  get buffered(): number {
    return this.#held.length;
  }

  /** Messages that were lost here, because too many waited. */
  get dropped(): number {
    return this.#dropped;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** No message is handed on any more; up to `maxBuffered` wait. */
  pause(): this {
    this.#demand = 0;
    return this;
  }

  /** What waits is handed on, and what comes. */
  resume(): this {
    this.#demand = Infinity;
    this.#handOn();
    return this;
  }

  /** So many more messages are handed on, then it is paused again. Throws `OPTION_INVALID`. */
  fetch(count: number): this {
    this.#demand += integer('count', count, 1, Number.MAX_SAFE_INTEGER);
    this.#handOn();
    return this;
  }

  /** Nothing comes any more; what waits goes to others, or is refused. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#hooks.onClose(this.#held.takeAll());
  }

  [Symbol.dispose](): void {
    this.close();
  }

  /** Nothing is handed on until `release`, whatever the unit asks for; much more than usual waits. @internal */
  hold(): void {
    this.#isHeld = true;
  }

  /** @internal */
  release(): void {
    this.#isHeld = false;
    this.#handOn();
  }

  /** It takes nothing any more: what waits here and what comes goes to `to`. @internal */
  divert(to: (delivery: Delivery) => void): void {
    this.#isClosed = true;
    this.#divert = to;
    for (const delivery of this.#held.takeAll()) to(delivery);
  }

  /** `gate` sees what comes first; true: it has taken it. @internal */
  guard(gate: ((delivery: Delivery, from: Outlet | undefined) => boolean) | undefined): void {
    this.#gate = gate;
  }

  /** False when it is closed. `from`: the peer that sent it, none: this loop. @internal */
  take(delivery: Delivery, from?: Outlet): boolean {
    if (this.#isClosed && this.#divert === undefined) return false;
    if (this.#gate?.(delivery, from)) return true;
    if (this.#divert === undefined) this.#accept(delivery);
    else this.#divert(delivery);
    return true;
  }

  /** As `take`, past the gate. @internal */
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

  /** It is lost, because too many wait. @internal */
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

  /** A handler may ask for more: that is the business of the call that called it. */
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
