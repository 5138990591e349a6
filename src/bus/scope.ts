// The scope of one unit, or of the program around the loops: what has been opened by its bus ends with it, and
// promises of its handlers are counted. When the unit moves to another loop, or is replaced, its consumers are
// handed off together (hand-offs.ts). Not here: the methods of its bus (bus.ts).

import type { Duplex } from 'node:stream';
import { CodedError } from '../errors.js';
import { ScopedBus } from './bus.js';
import type { Consumer } from './delivery/consumer.js';
import type { EventBus } from './event-bus.js';
import type { Registration } from './filters/codecs.js';
import type { HandOffs } from './hand-over/hand-offs.js';
import type { Successor } from './hand-over/incoming-hand-off.js';

/** A unit's successors on another loop, as the unit that moves there gets it. */
export interface HandOffTarget {
  /** The name of their bus. */
  readonly bus: string;
  readonly successors: readonly Successor[];
}

export interface ScopeOptions {
  /** True: its consumers take over the messages of those at another bus. */
  readonly isIncoming?: boolean;
  /** Name of the unit, for reports. */
  readonly unit?: string;
  /** Makes the error for a use of `what` after the end. Default: `BUS_CLOSED`. */
  readonly lateUse?: (what: string) => CodedError;
}

export class Scope {
  readonly unit: string | undefined;
  /** The bus of the unit. */
  readonly bus: ScopedBus;
  readonly #handOffs: HandOffs;
  /** With their `isLocal`. */
  readonly #consumers = new Map<Consumer, boolean>();
  readonly #streams = new Set<Duplex>();
  readonly #registrations = new Set<Registration>();
  readonly #atWork = new Set<Promise<unknown>>();
  readonly #lateUse: (what: string) => CodedError;
  /** True: it takes no consumers any more. */
  #isEnded = false;
  /** True: it sends nothing any more. */
  #isClosed = false;
  #isHeld = false;
  #isIncoming: boolean;

  /** `isIncoming`: its consumers are successors, which are not announced before `acceptHandOff`. */
  constructor(
    { parts }: EventBus,
    { isIncoming = false, unit, lateUse = ended }: ScopeOptions = {},
  ) {
    this.unit = unit;
    this.#lateUse = lateUse;
    this.#handOffs = parts.handOffs;
    this.#isIncoming = isIncoming;
    this.bus = new ScopedBus(parts, this);
  }

  /** True: new consumers take over the messages of those at another bus. */
  get isIncoming(): boolean {
    return this.#isIncoming;
  }

  /** Throws `BUS_CLOSED` after `end`: no more consumers. */
  checkLive(): void {
    if (this.#isEnded) throw this.#lateUse('its bus for consumers');
  }

  /** Throws `BUS_CLOSED` after `close`: no more messages. */
  checkOpen(): void {
    if (this.#isClosed) throw this.#lateUse('its bus');
  }

  addConsumer(consumer: Consumer, isLocal: boolean): void {
    for (const each of this.#consumers.keys()) if (each.isClosed) this.#consumers.delete(each);
    if (this.#isHeld) consumer.hold();
    this.#consumers.set(consumer, isLocal);
  }

  /** Counts a promise of a handler until it settles. */
  follow(promise: Promise<unknown>): void {
    this.#atWork.add(promise);
    const over = (): void => {
      this.#atWork.delete(promise);
    };
    promise.then(over, over);
  }

  /** Adds a stream, which is destroyed with this scope at the latest. */
  keep(stream: Duplex): Duplex {
    if (this.#isEnded) return stream.destroy();
    this.#streams.add(stream);
    stream.once('close', () => this.#streams.delete(stream));
    return stream;
  }

  /** Returns a registration that ends with this scope at the latest. */
  addRegistration(registration: Registration): Registration {
    const close = (): void => {
      this.#registrations.delete(own);
      registration.close();
    };
    const own: Registration = { close, [Symbol.dispose]: close };
    this.#registrations.add(own);
    return own;
  }

  /**
   * Closes its consumers; resolves when their running handlers have ended. Waiting messages go to other
   * consumers.
   */
  async end(): Promise<void> {
    this.#isEnded = true;
    for (const each of this.#consumers.keys()) each.close();
    await Promise.allSettled(this.#atWork);
    for (const each of this.#streams) each.destroy();
    for (const each of this.#registrations) each.close();
  }

  /** After `end`, when its last code has run. */
  close(): void {
    this.#isClosed = true;
  }

  /** Holds its consumers' messages until `release`; resolves when running handlers have ended. */
  async hold(): Promise<void> {
    this.#isHeld = true;
    for (const each of this.#consumers.keys()) each.hold();
    await Promise.allSettled(this.#atWork);
    await this.arrived();
  }

  /** Resolves when no source forwards messages any more, and all peers have its consumers. */
  async arrived(): Promise<void> {
    await this.#handOffs.arrived(new Set(this.#consumers.keys()));
  }

  /** Ends `hold`: consumers take messages again. */
  release(): void {
    this.#isHeld = false;
    for (const each of this.#consumers.keys()) each.release();
  }

  /**
   * Prepares to take over the consumers of the unit at the bus `from`, and sets aside messages until then.
   * Resolves with what that unit needs to hand off.
   */
  async acceptHandOff(from: string): Promise<HandOffTarget> {
    const handOffs = this.#handOffs;
    await handOffs.catchUp(); // what the source has handled does not come here any more
    this.#isIncoming = false;
    const consumers = new Set(this.#consumers.keys());
    const successors = handOffs.successorsAmong(consumers);
    handOffs.expect(consumers, from);
    await handOffs.catchUp(); // from now on all publications come here
    return { bus: handOffs.name, successors };
  }

  /** The name of the bus. */
  get busName(): string {
    return this.#handOffs.name;
  }

  /**
   * Hands off its consumers, the first of an address to the first successor of it; those without one are
   * closed. Returns false, and does nothing, when that bus is gone.
   */
  handOff({ bus, successors }: HandOffTarget): boolean {
    const handOffs = this.#handOffs;
    if (!handOffs.isThere(bus)) return false;
    this.#isEnded = true;
    const left = [...successors];
    for (const [consumer, isLocal] of this.#consumers) {
      if (consumer.isClosed) continue;
      const { address } = consumer;
      const at = left.findIndex((each) => each.address === address && each.isLocal === isLocal);
      const [successor] = at < 0 ? [] : left.splice(at, 1);
      if (successor === undefined) consumer.close();
      else handOffs.handOff(consumer, isLocal, { to: bus, token: successor.token });
    }
    for (const { token } of left) handOffs.activate(bus, token);
    return true;
  }
}

function ended(what: string): CodedError {
  return new CodedError('BUS_CLOSED', `the unit has ended and still uses ${what}`);
}
