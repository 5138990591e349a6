// The bus of one unit, or of the program around the loops: its consumers end with it, it counts handlers that
// are running, and it refuses manycore's own addresses. When the unit moves to another loop its consumers are
// handed off together (hand-offs.ts).

import type { Duplex } from 'node:stream';
import { CodedError } from '../errors.js';
import { string } from '../lib/index.js';
import { BusAddress } from './address.js';
import type { EventBus } from './bus.js';
import type { Consumer } from './delivery/consumer.js';
import type { BusHeaders, BusMessage, ReplyRequestOptions } from './delivery/message.js';
import type { BusCodec, Registration } from './filters/codecs.js';
import type { Interceptors } from './filters/interceptors.js';
import type { Successor } from './hand-over/incoming-hand-off.js';
import { reservedPrefix } from './reserved.js';
import { type StreamHandler, type StreamOptions, streamAcceptor } from './streams/streams.js';
import type { Bus, BusStats, ConsumerOptions, Handler, SendOptions } from './types.js';

/** A unit's successors on another loop, as the unit that moves there gets it. */
export interface HandOffTarget {
  /** The name of their bus. */
  readonly bus: string;
  readonly successors: readonly Successor[];
}

export class ScopedBus implements Bus {
  readonly #bus: EventBus;
  /** With their `isLocal`. */
  readonly #consumers = new Map<Consumer, boolean>();
  readonly #streams = new Set<Duplex>();
  readonly #registrations = new Set<Registration>();
  readonly #atWork = new Set<Promise<unknown>>();
  #isEnded = false;
  #isHeld = false;
  #makesSuccessors: boolean;

  /** `makesSuccessors`: its consumers are not announced before `acceptHandOff`. @internal */
  constructor(bus: EventBus, { makesSuccessors = false } = {}) {
    this.#bus = bus;
    this.#makesSuccessors = makesSuccessors;
  }

  /** Statistics of the whole loop's bus. */
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
    return this.#register(address, noted, options);
  }

  #checkLive(address: string): void {
    this.#check(address);
    if (!this.#isEnded) return;
    throw new CodedError('BUS_CLOSED', 'the unit has ended: it can have no consumers any more');
  }

  #register<Body>(
    address: string,
    handler: Handler<Body>,
    options: ConsumerOptions | undefined,
  ): Consumer {
    for (const each of this.#consumers.keys()) if (each.isClosed) this.#consumers.delete(each);
    const consumer = this.#makesSuccessors
      ? this.#bus.successor(address, handler, options)
      : this.#bus.consumer(address, handler, options);
    if (this.#isHeld) consumer.hold();
    this.#consumers.set(consumer, options?.isLocal === true);
    return consumer;
  }

  /** Wraps `handler` so that its promises are counted until they settle. */
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
    return this.#register(address, streamAcceptor(this.#bus, noted), options);
  }

  /** Adds a stream, which is destroyed with this bus at the latest. */
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
   * Closes its consumers; resolves when their running handlers have ended. Waiting messages go to other
   * consumers. @internal
   */
  async end(): Promise<void> {
    this.#isEnded = true;
    for (const each of this.#consumers.keys()) each.close();
    await Promise.allSettled(this.#atWork);
    for (const each of this.#streams) each.destroy();
    for (const each of this.#registrations) each.close();
  }

  /** Holds its consumers' messages until `release`; resolves when running handlers have ended. @internal */
  async hold(): Promise<void> {
    this.#isHeld = true;
    for (const each of this.#consumers.keys()) each.hold();
    await Promise.allSettled(this.#atWork);
    await this.arrived();
  }

  /** Resolves when no source forwards messages any more, and all peers have its consumers. @internal */
  async arrived(): Promise<void> {
    await this.#bus.handOffs.arrived(new Set(this.#consumers.keys()));
  }

  /** @internal */
  release(): void {
    this.#isHeld = false;
    for (const each of this.#consumers.keys()) each.release();
  }

  /**
   * Prepares to take over the consumers of the unit at the bus `from`, and sets aside messages until then.
   * Resolves with what that unit needs to hand off. @internal
   */
  async acceptHandOff(from: string): Promise<HandOffTarget> {
    const { handOffs } = this.#bus;
    await handOffs.catchUp(); // what the source has handled does not come here any more
    this.#makesSuccessors = false;
    const consumers = new Set(this.#consumers.keys());
    const successors = handOffs.successorsAmong(consumers);
    handOffs.expect(consumers, from);
    await handOffs.catchUp(); // from now on all publications come here
    return { bus: handOffs.name, successors };
  }

  /** The name of the bus. @internal */
  get busName(): string {
    return this.#bus.handOffs.name;
  }

  /**
   * Hands off its consumers, the first of an address to the first successor of it; those without one are
   * closed. Returns false, and does nothing, when that bus is gone. @internal
   */
  handOff({ bus, successors }: HandOffTarget): boolean {
    const { handOffs } = this.#bus;
    if (!handOffs.isPeer(bus)) return false;
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

  #check(address: string): void {
    if (typeof address !== 'string' || !address.startsWith(reservedPrefix)) return;
    throw new CodedError(
      'OPTION_INVALID',
      `address is "${address}": names that begin with "${reservedPrefix}" are manycore's own`,
    );
  }
}
