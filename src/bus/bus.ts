// The event bus of one loop: delivers messages to the consumers of an address, here or at a peer (the bus of
// another loop). Messages for a consumer here go through a queue that is processed in the next turn. So
// `send` never runs foreign code, and continuous sending does not starve the loop's other work.
//
// Order: messages of one bus to one consumer arrive in the order in which they were sent. Exception: messages
// that waited at another consumer when that was closed arrive late. Delivery is best effort, at most once, as
// in Vert.x, whose terms are used here.
// Not here: choosing the next consumer (routes.ts), buffering at a consumer (consumer.ts), the transport to a
// peer, and handing off a consumer to one (hand-offs.ts).
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
} from '../lib/index.js';
import { BusAddress } from './address.js';
import { Consumer } from './delivery/consumer.js';
import {
  type Asker,
  BusMessage,
  type Delivery,
  headersOf,
  type Outcome,
  type ReplyRequestOptions,
  trySettle,
  type Waiter,
} from './delivery/message.js';
import { type Locality, Receivers } from './delivery/receivers.js';
import { Requests } from './delivery/requests.js';
import { TurnQueue } from './delivery/turn-queue.js';
import { asCoded, busClosed, handlerError, noHandlers } from './errors.js';
import type { BusCodec, Registration } from './filters/codecs.js';
import { Filters } from './filters/filters.js';
import type { Interceptors } from './filters/interceptors.js';
import { messageTrace } from './filters/trace.js';
import { HandOffs } from './hand-over/hand-offs.js';
import {
  openStream,
  type StreamBus,
  type StreamHandler,
  type StreamOptions,
  streamAcceptor,
} from './streams/streams.js';
import type { Attached, AttachedUplink, Outlet, Peer, Uplink } from './transports/peer.js';
import type { BusStats, ConsumerOptions, Handler, SendOptions } from './types.js';

export interface BusOptions {
  /** Returns a body's copy for a consumer, which its sender cannot change. Throws if it cannot travel. */
  readonly copy: (body: unknown) => unknown;
}

const defaultMaxBuffered = 1000;

export class EventBus implements StreamBus {
  readonly #copy: (body: unknown) => unknown;
  readonly #receivers = new Receivers();
  readonly #requests = new Requests();
  readonly #queue = new TurnQueue();
  /** Hand-offs of consumers to and from other buses. @internal */
  readonly handOffs: HandOffs;
  readonly #whenDrained: (() => void)[] = [];
  readonly #filters = new Filters();
  /** The part of this bus that its messages use. */
  readonly #asker: Asker = {
    encode: (content, codec) => this.#filters.encode(content, codec),
    ask: (address, options, send) => this.#ask(address, options, send),
  };
  readonly #unregister = addSource('bus', this, ({ stats }) => stats);
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

  /** Delivers what waited at a closed consumer to others; publications have reached those already. */
  #passOn(delivery: Delivery): void {
    if (delivery.isPublished) return;
    if (this.#isClosed) delivery.waiter?.settle({ isDone: false, error: busClosed() });
    else this.#queue.again(delivery.address, () => this.#deliver(delivery));
  }

  /** Attaches a peer: its consumers get messages of this bus, and it is notified of the consumers here. */
  attach(peer: Peer): Attached {
    this.#receivers.addPeer(peer);
    this.handOffs.peerAdded(peer);
    return {
      receive: (delivery) => this.#receive(peer, delivery),
      interest: (address, consumers) => this.#receivers.setPeer(peer, address, consumers),
      noted: (note) => this.handOffs.receive(peer, note),
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
   * Attaches an uplink: it carries everything that is sent here, unless `locality` or the sender excludes it.
   * Throws `OPTION_INVALID` if a consumer's address is not valid for it.
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
    const reached = new Set<Peer>();
    const sendToPeers = (): void => {
      if (local === 'only') return;
      for (const each of this.#receivers.peersOf(address)) {
        if (reached.has(each)) continue;
        reached.add(each);
        this.#hand(each, delivery);
      }
    };
    const finish = (isLastTime: boolean): void => {
      sendToPeers(); // includes peers that have announced a consumer since
      const count =
        this.#spread(delivery, this.#receivers.consumersOf(address, local)) + reached.size;
      if (count > 0 || uplink !== undefined) return;
      if (isLastTime) this.#undelivered += 1;
      else this.#queue.again(address, () => finish(true));
    };
    const isFirst = !this.#queue.has(address);
    this.#queue.push(address, () => finish(false));
    if (isFirst) sendToPeers();
    this.#sent += 1;
    return this.#hasRoom;
  }

  send(address: string, body: unknown, options: SendOptions = {}): boolean {
    const delivery = this.#delivery(address, body, options, false, undefined);
    return delivery === undefined ? this.#hasRoom : this.#send(delivery, options.local);
  }

  /** Returns the message after interceptors and codecs; `undefined`: an interceptor has stopped it. */
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

  /** Resolves when no sent message waits any more. */
  async drained(): Promise<void> {
    if (!this.#hasRoom) await new Promise<void>((resolve) => this.#whenDrained.push(resolve));
    await this.#receivers.flush();
  }

  readonly #noteDrained = (): void => {
    if (!this.#hasRoom) return;
    for (const resolve of this.#whenDrained.splice(0)) resolve();
  };

  /** Returns false when messages wait on the way that it took. */
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

  /** Closes all consumers; waiting requests reject with `BUS_CLOSED`. A second call does nothing. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#unregister();
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

  /** Wraps a waiter for a consumer in the same loop: replies are copied, as between loops. */
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

  /** Delivers to all of these, a copy for each; returns how many took it. */
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
   * Delivers to the next consumer. Without one, tries once more in the next turn: by then every channel was
   * read since the sender may have been notified of a consumer. The body is a copy.
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

  /** Sends to a peer; an error can only reach the waiter, since the caller has returned long ago. */
  #hand(peer: Outlet, delivery: Delivery): void {
    try {
      peer.take(delivery);
    } catch (error) {
      this.#lose(delivery, asCoded(delivery.address, error));
    }
  }

  /**
   * Takes a message from a peer. Only consumers here may get it, or it would circulate; only from an uplink
   * it goes to others when the last consumer here has just closed.
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

  /** Returns `undefined` when decoding fails; the sender gets the error. */
  #decoded(delivery: Delivery): Delivery | undefined {
    try {
      return this.#filters.decode(delivery);
    } catch (error) {
      this.#lose(delivery, asCoded(delivery.address, error));
      return undefined;
    }
  }

  /** Passes an error to the waiter, or else announces it on the diagnostics channel. */
  #lose({ address, waiter }: Delivery, error: CodedError): void {
    if (waiter !== undefined) {
      trySettle(waiter, address, { isDone: false, error });
      return;
    }
    this.#dropped += 1;
    announcements.busDropped.publish({ address, why: error.message });
  }

  /** Calls `send` with a waiter; resolves with the reply that it gets. */
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

/** A handler threw: the error is the reply, or without a waiter an uncaught exception of the program. */
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
