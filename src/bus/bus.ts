// The event bus of one loop: hands messages to the consumers of an address, here or at a peer, the bus of
// another loop. What is for a consumer here goes through a queue that is worked off in the next turn, so
// that `send` never runs somebody else's code, and nobody who sends without a pause keeps the loop from
// its other work.
//
// Order: messages of one bus to one consumer arrive in the order in which they were sent, but for those
// that waited at another consumer when that was closed: they come late. Best effort, at most once, as in
// Vert.x, whose words these are.
// Not here: whose turn it is (routes.ts), what waits at a consumer (consumer.ts), the way to a peer, and how
// a consumer goes to one (hand-offs.ts).
// Long (over 400 lines): the way of a message, from `send` to its handler, is to be read in one place.

import type { Duplex } from 'node:stream';
import { addSource } from '../agent/index.js';
import type { CodedError } from '../errors.js';
import {
  announcements,
  boolean,
  checkFunction,
  integer,
  nextTick,
  oneOf,
  string,
} from '../internal/index.js';
import { BusAddress } from './address.js';
import type { BusCodec, Registration } from './codecs.js';
import { Consumer } from './consumer.js';
import { asCoded, busClosed, handlerError, noHandlers } from './errors.js';
import { Filters } from './filters.js';
import { HandOffs } from './hand-offs.js';
import type { Interceptors } from './interceptors.js';
import {
  type Asker,
  BusMessage,
  type Delivery,
  headersOf,
  type Outcome,
  type ReplyRequestOptions,
  trySettle,
  type Waiter,
} from './message.js';
import type { Attached, AttachedUplink, Outlet, Peer, Uplink } from './peer.js';
import { type Locality, Receivers } from './receivers.js';
import { Requests } from './requests.js';
import {
  openStream,
  type StreamBus,
  type StreamHandler,
  type StreamOptions,
  streamAcceptor,
} from './streams.js';
import { messageTrace } from './trace.js';
import { TurnQueue } from './turn-queue.js';
import type { BusStats, ConsumerOptions, Handler, SendOptions } from './types.js';

export interface BusOptions {
  /** What a consumer gets of a body: nothing that its sender can change. Throws for what cannot travel. */
  readonly copy: (body: unknown) => unknown;
}

const defaultMaxBuffered = 1000;

export class EventBus implements StreamBus {
  readonly #copy: (body: unknown) => unknown;
  readonly #receivers = new Receivers();
  readonly #requests = new Requests();
  readonly #queue = new TurnQueue();
  /** Of consumers that go to another bus, or come from one. @internal */
  readonly handOffs: HandOffs;
  readonly #whenDrained: (() => void)[] = [];
  readonly #filters = new Filters();
  /** What messages have of this. */
  readonly #asker: Asker = {
    encode: (content, codec) => this.#filters.encode(content, codec),
    ask: (address, options, send) => this.#ask(address, options, send),
  };
  readonly #untell = addSource('bus', this, ({ stats }) => stats);
  #isClosed = false;
  #sent = 0;
  #received = 0;
  #undelivered = 0;
  #dropped = 0;

  /** @internal */
  constructor({ copy }: BusOptions) {
    this.#copy = copy;
    this.#queue.onEmpty = this.#noteDrained;
    this.#filters.onStop = () => {
      this.#dropped += 1;
    };
    this.handOffs = new HandOffs({
      receivers: this.#receivers,
      queue: this.#queue,
      hand: (peer, delivery) => this.#hand(peer, delivery),
      passOn: (delivery) => this.#passOn(delivery),
    });
  }

  get stats(): BusStats {
    return {
      sent: this.#sent,
      received: this.#received,
      undelivered: this.#undelivered,
      dropped: this.#dropped,
    };
  }

  consumer<Body = unknown>(
    address: string,
    handler: Handler<Body>,
    options?: ConsumerOptions,
  ): Consumer {
    return this.#register(address, handler, options, false);
  }

  /**
   * Registers a consumer that takes over the messages of one at another bus (hand-offs.ts). Peers are not
   * notified of it before. Throws as `consumer`. @internal
   */
  successor<Body = unknown>(
    address: string,
    handler: Handler<Body>,
    options?: ConsumerOptions,
  ): Consumer {
    return this.#register(address, handler, options, true);
  }

  #register<Body>(
    address: string,
    handler: Handler<Body>,
    { maxBuffered = defaultMaxBuffered, isLocal = false }: ConsumerOptions = {},
    isSuccessor: boolean,
  ): Consumer {
    this.#check(address);
    checkFunction('handler', handler);
    const limit = integer('maxBuffered', maxBuffered, 1, Number.MAX_SAFE_INTEGER);
    boolean('isLocal', isLocal);
    const consumer = new Consumer(address, limit, {
      handle: (delivery) => this.#handle(delivery, handler),
      onDrop: (dropped) => this.#noteDropped(address, dropped),
      onClose: (held) => {
        this.#receivers.delete(consumer, isLocal);
        this.handOffs.successorClosed(consumer);
        for (const delivery of held) this.#passOn(delivery);
      },
    });
    if (isSuccessor) this.handOffs.addSuccessor(consumer, isLocal);
    else this.#receivers.add(consumer, isLocal);
    return consumer;
  }

  /** What waited at a consumer that was closed; what is published all others have. */
  #passOn(delivery: Delivery): void {
    if (delivery.isPublished) return;
    if (this.#isClosed) delivery.waiter?.settle({ isDone: false, error: busClosed() });
    else this.#queue.again(delivery.address, () => this.#deliver(delivery));
  }

  /** From now on the consumers of `peer` get messages of this bus, and it hears of those that are here. */
  attach(peer: Peer): Attached {
    this.#receivers.addPeer(peer);
    this.handOffs.peerAdded(peer);
    return {
      receive: (delivery) => this.#receive(peer, delivery),
      heard: (address, consumers) => this.#receivers.setPeer(peer, address, consumers),
      noted: (note) => this.handOffs.hear(peer, note),
      drained: () => {
        this.handOffs.drained();
        this.#noteDrained();
      },
      ended: () => {
        this.#receivers.deletePeer(peer);
        this.handOffs.peerEnded(peer);
        this.#noteDrained();
      },
    };
  }

  /**
   * From now on it carries what is sent here, to whomever, unless `locality` or the sender says no. Throws
   * `OPTION_INVALID` for the address of a consumer that cannot go this way.
   */
  attachUplink(uplink: Uplink, locality: Locality): AttachedUplink {
    this.#receivers.setUplink(uplink, locality);
    return {
      receive: (delivery) => this.#receive(uplink, delivery),
      undelivered: () => {
        this.#undelivered += 1;
      },
      drained: this.#noteDrained,
      ended: () => {
        this.#receivers.endUplink();
        this.#noteDrained();
      },
    };
  }

  publish(address: string, body: unknown, options: SendOptions = {}): boolean {
    const { local } = options;
    const made = this.#delivery(address, body, options, true, undefined);
    if (made === undefined) return this.#hasRoom;
    const uplink = local === 'only' ? undefined : this.#receivers.uplinkFor(address);
    uplink?.take(made);
    if (uplink !== undefined && this.#receivers.consumersOf(address, local).length === 0) {
      this.#sent += 1;
      return this.#hasRoom;
    }
    const delivery = { ...made, body: this.#copy(made.body) };
    const told = new Set<Peer>();
    const tell = (): void => {
      if (local === 'only') return;
      for (const each of this.#receivers.peersOf(address)) {
        if (told.has(each)) continue;
        told.add(each);
        this.#hand(each, delivery);
      }
    };
    const finish = (isLastTime: boolean): void => {
      tell(); // also those that we have heard of since
      const count = this.#spread(delivery, this.#receivers.consumersOf(address, local)) + told.size;
      if (count > 0 || uplink !== undefined) return;
      if (isLastTime) this.#undelivered += 1;
      else this.#queue.again(address, () => finish(true));
    };
    const isFirst = !this.#queue.has(address);
    this.#queue.push(address, () => finish(false));
    if (isFirst) tell();
    this.#sent += 1;
    return this.#hasRoom;
  }

  send(address: string, body: unknown, options: SendOptions = {}): boolean {
    const delivery = this.#delivery(address, body, options, false, undefined);
    return delivery === undefined ? this.#hasRoom : this.#send(delivery, options.local);
  }

  /** What is sent, after interceptors and codecs; `undefined`: an interceptor has stopped it. */
  #delivery(
    address: string,
    body: unknown,
    { headers, local, codec }: SendOptions,
    isPublished: boolean,
    waiter: Waiter | undefined,
  ): Delivery | undefined {
    this.#check(address);
    checkLocal(local);
    const own = headersOf(headers);
    const all = messageTrace(address)?.outbound(own) ?? own;
    const given = { address, body, headers: all, waiter, isPublished };
    return this.#filters.pass(given, codec);
  }

  get #hasRoom(): boolean {
    return this.#queue.hasRoom && this.#receivers.hasRoom;
  }

  /** Resolves when nothing that was sent waits any more. */
  async drained(): Promise<void> {
    if (!this.#hasRoom) await new Promise<void>((resolve) => this.#whenDrained.push(resolve));
    await this.#receivers.flush();
  }

  readonly #noteDrained = (): void => {
    if (!this.#hasRoom) return;
    for (const resolve of this.#whenDrained.splice(0)) resolve();
  };

  /** False when something waits on the way that it took. */
  #send(delivery: Delivery, local: Locality): boolean {
    const { address, waiter } = delivery;
    const receiver = this.#queue.has(address) ? undefined : this.#receivers.next(address, local);
    if (receiver !== undefined && !(receiver instanceof Consumer)) {
      receiver.take(delivery);
      this.#sent += 1;
      return receiver.hasRoom && this.#queue.hasRoom;
    }
    const own = { ...delivery, body: this.#copy(delivery.body), waiter: this.#near(waiter) };
    this.#queue.push(address, () => {
      if (receiver === undefined || !receiver.take(own)) this.#deliver(own, local);
    });
    this.#sent += 1;
    return this.#queue.hasRoom;
  }

  async request<Body = unknown>(
    address: string,
    body: unknown,
    options: SendOptions & ReplyRequestOptions = {},
  ): Promise<BusMessage<Body>> {
    return await this.#ask<Body>(address, options, (waiter) => {
      const delivery = this.#delivery(address, body, options, false, waiter);
      if (delivery !== undefined) this.#send(delivery, options.local);
    });
  }

  intercept(interceptors: Interceptors): Registration {
    return this.#filters.intercept(interceptors);
  }

  addCodec<Value, Encoded>(codec: BusCodec<Value, Encoded>): Registration {
    return this.#filters.addCodec(codec);
  }

  openStream(address: string, options?: StreamOptions): Promise<Duplex> {
    return openStream(this, address, options);
  }

  acceptStreams(address: string, handler: StreamHandler, options?: ConsumerOptions): Consumer {
    return this.consumer(address, streamAcceptor(this, handler), options);
  }

  watch(address: string, onGone: () => void): () => void {
    return this.#receivers.watch(address, onGone);
  }

  address<Request = unknown, Reply = unknown>(name: string): BusAddress<Request, Reply> {
    return new BusAddress<Request, Reply>(this, string('address', name, 'a name'));
  }

  /** Ends all consumers; requests that wait reject with `BUS_CLOSED`. A second call does nothing. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#untell();
    this.#requests.rejectAll(busClosed());
    for (const each of this.#receivers.here) each.close();
    for (const each of this.handOffs.close()) this.#passOn(each);
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #check(address: string): void {
    string('address', address, 'a name');
    this.#receivers.uplinkFor(address)?.check(address);
    if (this.#isClosed) throw busClosed();
  }

  /** Who waits here for a consumer that is here, too: answers are copied, as between loops. */
  #near(waiter: Waiter | undefined): Waiter | undefined {
    if (waiter === undefined) return undefined;
    const settle = (outcome: Outcome): void => {
      if (!outcome.isDone) waiter.settle(outcome);
      else {
        const body = this.#copy(outcome.body);
        waiter.settle({ ...outcome, body, waiter: this.#near(outcome.waiter) });
      }
    };
    return { settle, whenOver: (callback) => waiter.whenOver(callback) };
  }

  /** To all of these, each with a copy of its own; answers how many they are. */
  #spread(delivery: Delivery, consumers: readonly Consumer[], from?: Outlet): number {
    let count = 0;
    for (const [at, each] of consumers.entries()) {
      const isLast = at === consumers.length - 1;
      const own = isLast ? delivery : { ...delivery, body: this.#copy(delivery.body) };
      if (each.take(own, from)) count += 1;
    }
    return count;
  }

  /**
   * To whose turn it is now. Where nobody is known, once more in the next turn: by then every channel has
   * been read since the sender may have heard of a consumer. The body is a copy.
   */
  #deliver(delivery: Delivery, local?: Locality, isLastTime = false): void {
    const { address } = delivery;
    const receiver = this.#receivers.next(address, local);
    if (receiver === undefined) {
      if (isLastTime) this.#refuse(delivery);
      else this.#queue.again(address, () => this.#deliver(delivery, local, true));
    } else if (receiver instanceof Consumer) receiver.take(delivery);
    else this.#hand(receiver, delivery);
  }

  /** To a peer, where nobody is left to hear that it cannot be sent but who waits for the answer. */
  #hand(peer: Outlet, delivery: Delivery): void {
    try {
      peer.take(delivery);
    } catch (error) {
      this.#lose(delivery, asCoded(delivery.address, error));
    }
  }

  /**
   * Of a peer, which knows of consumers here: they alone, or it would go round and round. An uplink finds
   * others when the last one that was here has just gone.
   */
  #receive(peer: Outlet, delivery: Delivery): void {
    if (this.#isClosed) {
      delivery.waiter?.settle({ isDone: false, error: busClosed() });
    } else if (delivery.isPublished) {
      this.#spread(delivery, this.#receivers.consumersForPeer(peer, delivery.address), peer);
    } else if (!this.handOffs.takeForwarded(delivery)) {
      const consumer = this.#receivers.nextForPeer(peer, delivery.address);
      if (consumer !== undefined) consumer.take(delivery, peer);
      else if (this.#receivers.isUplink(peer)) this.#hand(peer, delivery);
      else this.#refuse(delivery);
    }
  }

  #refuse({ address, waiter }: Delivery): void {
    this.#undelivered += 1;
    trySettle(waiter, address, { isDone: false, error: noHandlers(address) });
  }

  #noteDropped(address: string, dropped: number): void {
    this.#dropped += 1;
    if (dropped > 1) return;
    announcements.busDropped.publish({ address, why: 'too many messages wait at its consumer' });
  }

  #handle(received: Delivery, handler: Handler<never>): void {
    this.#received += 1;
    const decoded = this.#decoded(received);
    if (decoded === undefined) return;
    let message = new BusMessage<never>(decoded, this.#asker);
    try {
      const delivery = this.#filters.receive(decoded);
      if (delivery === undefined) return;
      if (delivery !== decoded) message = new BusMessage<never>(delivery, this.#asker);
      const trace = messageTrace(delivery.address);
      const result: unknown =
        trace === undefined
          ? Reflect.apply(handler, undefined, [message])
          : trace.inbound(delivery, () => Reflect.apply(handler, undefined, [message]));
      if (result instanceof Promise) result.catch((error: unknown) => failed(message, error));
    } catch (error) {
      failed(message, error);
    }
  }

  /** `undefined`: it cannot be, which the sender hears. */
  #decoded(delivery: Delivery): Delivery | undefined {
    try {
      return this.#filters.decode(delivery);
    } catch (error) {
      this.#lose(delivery, asCoded(delivery.address, error));
      return undefined;
    }
  }

  /** Tells whoever waits, else whoever listens to what is announced. */
  #lose({ address, waiter }: Delivery, error: CodedError): void {
    if (waiter !== undefined) {
      trySettle(waiter, address, { isDone: false, error });
      return;
    }
    this.#dropped += 1;
    announcements.busDropped.publish({ address, why: error.message });
  }

  /** Calls `send` with a waiter; resolves with what that hears. */
  async #ask<Body>(
    address: string,
    options: ReplyRequestOptions,
    send: (waiter: Waiter) => void,
  ): Promise<BusMessage<Body>> {
    if (this.#isClosed) throw busClosed();
    const answer = await this.#requests.ask(address, options, send);
    return new BusMessage<Body>(this.#filters.decode(answer), this.#asker);
  }
}

/** A handler threw: that is the answer, or where nobody waits for one the program's to know. */
function failed(message: BusMessage, cause: unknown): void {
  if (message.isAwaited) {
    message.failWith(handlerError(message.address, cause));
    return;
  }
  nextTick(() => {
    throw cause;
  });
}

function checkLocal(local: Locality): void {
  if (local !== undefined) oneOf('local', local, ['only', 'prefer']);
}
