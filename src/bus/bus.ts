// The methods of the bus. Each is written here and in its type (types.ts), and nowhere else: the bus of a loop
// (event-bus.ts) inherits them, that of a unit has a scope (scope.ts), and `forwardingBus` makes a bus that
// calls those of another. A message is checked, changed by filters, and given to the transport of its turn.
//
// Order: messages of one bus to one consumer arrive in the order in which they were sent. Exception: messages
// that waited at another consumer when that was closed arrive late. Delivery is best effort, at most once, as
// in Vert.x, whose terms are used here.
// Not here: choosing the next receiver (receivers.ts), the ways there (transports/), and calling the handler
// (consumer.ts).

import type { Duplex } from 'node:stream';
import { CodedError } from '../errors.js';
import {
  boolean,
  checkFunction,
  integer,
  invalid,
  oneOf,
  refuseInTransaction,
  string,
} from '../lib/index.js';
import { BusAddress } from './address.js';
import { Consumer } from './delivery/consumer.js';
import { headersOf, noHeaders } from './delivery/headers.js';
import type { BusMessage, Delivery, ReplyRequestOptions, Waiter } from './delivery/message.js';
import type { Locality } from './delivery/receivers.js';
import { busClosed } from './errors.js';
import type { BusParts } from './event-bus.js';
import type { BusCodec, Registration } from './filters/codecs.js';
import type { Interceptors } from './filters/interceptors.js';
import { messageTrace, tracedHeaders } from './filters/trace.js';
import { followerOf } from './monitors/targets.js';
import type { ConsumerEnd, InstanceEnd, MonitoredDeployment } from './monitors/types.js';
import { busOptions } from './options.js';
import { reservedPrefix } from './reserved.js';
import type { Scope } from './scope.js';
import type { ServiceProxy } from './services/methods.js';
import { fillMicro } from './services/micro.js';
import { makeProxy, type ProxyOptions } from './services/proxy.js';
import { prepareService, type ServiceOptions } from './services/service.js';
import {
  openStream,
  type StreamHandler,
  type StreamOptions,
  type StreamParts,
  streamAcceptor,
} from './streams/streams.js';
import type { Transport } from './transports/transport.js';
import type { Bus, BusStats, ConsumerOptions, Handler, SendOptions } from './types.js';

const defaultMaxBuffered = 1000;

export class ScopedBus implements Bus {
  readonly #parts: BusParts;
  readonly #scope: Scope | undefined;

  /** Without a scope all addresses are allowed, and nothing ends before the loop's bus. */
  constructor(parts: BusParts, scope?: Scope) {
    this.#parts = parts;
    this.#scope = scope;
  }

  /** Statistics of the whole loop's bus. */
  get stats(): BusStats {
    return this.#parts.state.stats;
  }

  consumer<Body = unknown>(
    address: string,
    handler: Handler<Body>,
    options?: ConsumerOptions,
  ): Consumer<Body>;
  consumer<Body = unknown>(address: string, options?: ConsumerOptions): Consumer<Body>;
  consumer(
    address: string,
    given?: Handler<never> | ConsumerOptions,
    more?: ConsumerOptions,
  ): Consumer<never> {
    if (typeof given === 'function') {
      return this.#register(address, given, busOptions('consumer', more));
    }
    const isOptions = given === undefined || typeof given === 'object';
    if (!isOptions || more !== undefined) checkFunction('handler', given);
    return this.#register(address, undefined, busOptions('consumer', given));
  }

  #register(
    address: string,
    handler: Handler<never> | undefined,
    { maxBuffered = defaultMaxBuffered, isLocal = false }: ConsumerOptions,
  ): Consumer<never> {
    const { receivers, handOffs, local } = this.#parts;
    const scope = this.#scope;
    this.#check(address);
    scope?.checkLive();
    if (handler !== undefined) checkFunction('handler', handler);
    integer('maxBuffered', maxBuffered, 1, Number.MAX_SAFE_INTEGER);
    boolean('isLocal', isLocal);
    const consumer = new Consumer<never>(address, this.#parts, {
      maxBuffered,
      handler,
      unit: scope?.unit,
      onPromise: scope && ((promise) => scope.follow(promise)),
      onClose: (closed, held) => {
        receivers.closed(closed, isLocal);
        handOffs.successorClosed(closed);
        for (const message of held) local.passOn(message);
      },
    });
    if (scope?.isIncoming) handOffs.addSuccessor(consumer, isLocal);
    else receivers.add(consumer, isLocal);
    scope?.addConsumer(consumer, isLocal);
    return consumer;
  }

  #check(address: string): void {
    string('address', address, 'a name');
    refuseInTransaction('the bus');
    if (this.#scope !== undefined && address.startsWith(reservedPrefix)) throw reserved(address);
    const { receivers, state } = this.#parts;
    if (receivers.hasUplink) receivers.check(address);
    if (state.isClosed) throw busClosed();
    this.#scope?.checkOpen();
  }

  publish(address: string, body: unknown, options?: SendOptions): boolean {
    const given = busOptions('publish', options);
    const message = this.#message(address, body, given, true, undefined);
    if (message !== undefined) {
      this.#publish(message);
      this.#parts.state.sent += 1;
    }
    return this.#parts.receivers.hasRoom;
  }

  /** Consumers here, and peers that announce one meanwhile, get it in the next turn. */
  #publish(message: Delivery): void {
    const { receivers, local, queue, state } = this.#parts;
    const { address, locality } = message;
    const uplink = locality === 'only' ? undefined : receivers.uplinkFor(address);
    if (uplink !== undefined) {
      const isReached = receivers.consumersOf(address, locality).length > 0;
      uplink.deliver(isReached ? { ...message, isReached } : message);
      if (!isReached) return;
    }
    const copy = local.copyOf(message);
    const reached = new Set<Transport>();
    const sendToPeers = (): void => {
      if (locality === 'only') return;
      for (const each of receivers.peersOf(address)) {
        if (reached.has(each)) continue;
        reached.add(each);
        local.passTo(each, copy);
      }
    };
    const finish = (isLastTime: boolean): void => {
      sendToPeers();
      const here = local.spread(copy, receivers.consumersOf(address, locality));
      if (here + reached.size > 0 || uplink !== undefined) return;
      if (isLastTime) state.undelivered += 1;
      else queue.again(address, () => finish(true));
    };
    const isFirst = !queue.waiting.has(address);
    queue.push(address, () => finish(false));
    if (isFirst) sendToPeers();
  }

  send(address: string, body: unknown, options?: SendOptions): boolean {
    const given = busOptions('send', options);
    const message = this.#message(address, body, given, false, undefined);
    if (message === undefined) return this.#parts.receivers.hasRoom;
    const transport = this.#send(message);
    return transport.hasRoom && this.#parts.local.hasRoom;
  }

  /** Returns the transport that took it. A message must not overtake others to its address, which wait. */
  #send(message: Delivery): Transport {
    const { receivers, local, queue, state } = this.#parts;
    const { address, locality } = message;
    const next = queue.waiting.has(address) ? undefined : receivers.next(address, locality);
    const transport = next ?? local;
    transport.deliver(message);
    state.sent += 1;
    return transport;
  }

  /** Returns the message after interceptors and codecs; `undefined`: an interceptor has stopped it. */
  #message(
    address: string,
    body: unknown,
    { headers, local, codec }: SendOptions,
    isPublished: boolean,
    waiter: Waiter | undefined,
  ): Delivery | undefined {
    this.#check(address);
    checkLocal(local);
    const given = headers === undefined ? noHeaders : headersOf(headers);
    const all = messageTrace === undefined ? given : tracedHeaders(messageTrace, address, given);
    const message = { address, body, headers: all, waiter, isPublished, locality: local };
    return this.#parts.filters.send(message, codec);
  }

  async request<Body = unknown>(
    address: string,
    body: unknown,
    options?: SendOptions & ReplyRequestOptions,
  ): Promise<BusMessage<Body>> {
    const given = busOptions('request', options);
    const request = this.#parts.requests.open(address, given);
    try {
      const message = this.#message(address, body, given, false, request);
      if (message !== undefined) this.#send(message);
    } catch (error) {
      request.fail(error);
    }
    return request.reply;
  }

  address<Request = unknown, Reply = unknown>(name: string): BusAddress<Request, Reply> {
    return new BusAddress<Request, Reply>(this, string('address', name, 'a name'));
  }

  service(address: string, service: object, options?: ServiceOptions): Consumer {
    const { micro: description, ...given } = busOptions('service', options);
    const micro = description === undefined ? undefined : fillMicro(description);
    if (micro !== undefined && given.isLocal) {
      throw invalid('isLocal', true, 'false with micro: others could not call the service');
    }
    const { handler, methods } = prepareService(address, service);
    const consumer = this.#register(address, handler, given);
    if (micro !== undefined) {
      const shown = { address, micro, methods, startedAt: new Date() };
      void consumer.closed.then(this.#parts.services.add(shown));
    }
    return consumer;
  }

  proxy<T>(address: string, options?: ProxyOptions): ServiceProxy<T> {
    const given = busOptions('proxy', options);
    checkLocal(given.local);
    return makeProxy<T>(this, string('address', address, 'a name'), given);
  }

  async openStream(address: string, options?: StreamOptions): Promise<Duplex> {
    this.#check(address);
    const given = busOptions('openStream', options);
    const stream = await openStream(this.#streams, address, given);
    return this.#scope?.keep(stream) ?? stream;
  }

  acceptStreams(address: string, handler: StreamHandler, options?: ConsumerOptions): Consumer {
    const given = busOptions('acceptStreams', options);
    const scope = this.#scope;
    const keep = (stream: Duplex): Duplex => scope?.keep(stream) ?? stream;
    return this.#register(address, streamAcceptor(this.#streams, handler, keep), given);
  }

  /** The ends of streams have addresses of manycore's own. */
  get #streams(): StreamParts {
    return { bus: new ScopedBus(this.#parts), receivers: this.#parts.receivers };
  }

  monitor(target: string, listener: (end: ConsumerEnd) => unknown): Registration;
  monitor(target: MonitoredDeployment, listener: (end: InstanceEnd) => unknown): Registration;
  monitor(target: unknown, listener: (end: never) => unknown): Registration {
    const { monitors } = this.#parts;
    const unit = this.#scope?.unit;
    const follow = followerOf(target);
    this.#scope?.checkLive();
    checkFunction('listener', listener);
    const call = (end: unknown): unknown => Reflect.apply(listener, undefined, [end]);
    if (follow !== undefined) {
      const what = String(Reflect.get(Object(target), 'name'));
      return this.#added(monitors.follow(follow, { call, what, unit }));
    }
    const wanted = 'an address, or a deployment that deploy() returned';
    const address = string('target', target, wanted);
    this.#check(address);
    return this.#added(monitors.add(address, call, unit));
  }

  intercept(interceptors: Interceptors): Registration {
    return this.#added(this.#parts.filters.intercept(interceptors));
  }

  addCodec<Value, Encoded>(codec: BusCodec<Value, Encoded>): Registration {
    return this.#added(this.#parts.filters.addCodec(codec, this.#scope?.unit));
  }

  #added(registration: Registration): Registration {
    return this.#scope?.addRegistration(registration) ?? registration;
  }

  async drained(): Promise<void> {
    await this.#parts.receivers.drained();
  }
}

function reserved(address: string): CodedError {
  return new CodedError(
    'OPTION_INVALID',
    `address is "${address}": names that begin with "${reservedPrefix}" are manycore's own`,
  );
}

function checkLocal(local: Locality): void {
  if (local !== undefined) oneOf('local', local, ['only', 'prefer']);
}

type Methods = Omit<Bus, 'stats'>;
type ParameterCount = Required<Parameters<Methods[keyof Methods]>>['length'];
/** `never` if a method has more parameters than `forwarder` passes on. */
type Forwarded = ParameterCount extends 0 | 1 | 2 | 3 ? Bus : never;

/**
 * Returns a frozen bus whose methods, also as plain functions, call those of the `ScopedBus` that `current`
 * returns at each call.
 */
export function forwardingBus(current: () => Bus): Forwarded {
  const names = Object.getOwnPropertyNames(ScopedBus.prototype);
  const entries: readonly (readonly unknown[])[] = names
    .filter((name) => name !== 'constructor' && name !== 'stats')
    .map((name) => [name, forwarder(name, current)]);
  const methods: Methods = Object.fromEntries(entries);
  return Object.freeze({
    ...methods,
    get stats(): BusStats {
      return current().stats;
    },
  });
}

/** Parameters are written out: a list of them would be an array for each message. */
function forwarder(name: string, current: () => Bus): unknown {
  type Method = (this: Bus, a: unknown, b: unknown, c: unknown) => unknown;
  const method: Method = Reflect.get(ScopedBus.prototype, name);
  return { [name]: (a: unknown, b: unknown, c: unknown) => method.call(current(), a, b, c) }[name];
}
