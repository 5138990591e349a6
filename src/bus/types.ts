// The bus as programs see it: one contract for the bus of a loop, of a unit and of the package. A new method
// is written here and in bus.ts.

import type { Duplex } from 'node:stream';
import type { BusAddress } from './address.js';
import type { Consumer } from './delivery/consumer.js';
import type { OutgoingBusHeaders } from './delivery/headers.js';
import type { BusMessage, ReplyRequestOptions } from './delivery/message.js';
import type { Locality } from './delivery/receivers.js';
import type { BusCodec, Registration } from './filters/codecs.js';
import type { Interceptors } from './filters/interceptors.js';
import type { ConsumerEnd, InstanceEnd, MonitoredDeployment } from './monitors/types.js';
import type { ServiceProxy } from './services/methods.js';
import type { ProxyOptions } from './services/proxy.js';
import type { ServiceOptions } from './services/service.js';
import type { StreamHandler, StreamOptions } from './streams/streams.js';

export interface SendOptions {
  readonly headers?: OutgoingBusHeaders | undefined;
  /**
   * Consumers of this loop alone (`only`), or before those of others (`prefer`, not for `publish`).
   * Default: all by turns.
   */
  readonly local?: Locality;
  /** The name of the codec for the body. Default: that of its class, if there is one. */
  readonly codec?: string | undefined;
}

export interface ConsumerOptions {
  /** Messages that may wait while it is paused, or for its iteration; more are dropped. Default: 1,000. */
  readonly maxBuffered?: number | undefined;
  /** True: it gets only messages of this loop. Default: false. */
  readonly isLocal?: boolean | undefined;
}

/** Called for one message after the other; the next one does not wait for a promise that it returns. */
export type Handler<Body = unknown> = (message: BusMessage<Body>) => unknown;

export interface BusStats {
  readonly sent: number;
  readonly received: number;
  /** Sent or published to an address without consumers. */
  readonly undelivered: number;
  /** Lost at consumers where too many waited. */
  readonly dropped: number;
  /** Errors of handlers that no requester got. */
  readonly failed: number;
}

export interface Bus {
  readonly stats: BusStats;
  /**
   * Calls `handler` for messages to `address`, until the consumer is closed. An exception of the handler is
   * the reply to a request. For other messages `manycore:bus:handler-failed` announces it, without a
   * subscriber as a warning of Node; it ends nothing. Without a handler its messages wait, up to `maxBuffered`,
   * until they are iterated by `for await`. Throws `OPTION_INVALID`, `BUS_CLOSED`.
   */
  consumer<Body = unknown>(
    address: string,
    handler: Handler<Body>,
    options?: ConsumerOptions,
  ): Consumer<Body>;
  consumer<Body = unknown>(address: string, options?: ConsumerOptions): Consumer<Body>;
  /**
   * Sends to every consumer of `address`. Returns false when something waits now: await `drained()` before
   * sending much more. Throws `OPTION_INVALID`, `BUS_CLOSED`, `BUS_FULL`, `BUS_CODEC_FAILED`, or `TRANSFER_…`
   * for a body that cannot travel: then no consumer gets it.
   */
  publish(address: string, body: unknown, options?: SendOptions): boolean;
  /** Sends to one consumer of `address`, by turns. Returns and throws as `publish` does. */
  send(address: string, body: unknown, options?: SendOptions): boolean;
  /**
   * Sends to one consumer of `address`, by turns; resolves with its reply. Rejects with `BUS_NO_HANDLERS`,
   * `BUS_TIMEOUT`, `BUS_FAILED`, `BUS_HANDLER_ERROR`, `BUS_CONSUMER_LOST`, `BUS_INTERCEPTED`, `ABORTED`, and
   * with what `publish` throws.
   */
  request<Body = unknown>(
    address: string,
    body: unknown,
    options?: SendOptions & ReplyRequestOptions,
  ): Promise<BusMessage<Body>>;
  /** Returns this bus for one address, with types. Throws `OPTION_INVALID`. */
  address<Request = unknown, Reply = unknown>(name: string): BusAddress<Request, Reply>;
  /**
   * Registers the methods of an object, its own and those that it inherits, for proxies of `address`: each call
   * is a request to one of the services there, by turns. A method may return a promise; what it throws rejects
   * the call. In a cluster on NATS `micro` shows the service to its tools. Names that begin with `_` or `#`, `then`, `toJSON` and those of `Object.prototype` are no methods.
   * Throws as `consumer`.
   */
  service(address: string, service: object, options?: ServiceOptions): Consumer;
  /**
   * Returns an object whose methods are requests to the service at `address`. Each returns one promise, which
   * rejects as `request` does, with `BUS_HANDLER_ERROR` where the method threw, and with `BUS_NO_METHOD` where
   * the service has none of this name. Throws `OPTION_INVALID`.
   */
  proxy<T>(address: string, options?: ProxyOptions): ServiceProxy<T>;
  /**
   * Opens a stream to one of the acceptors at `address`, by turns. Both ends are Duplex streams for values of
   * any kind, and a slow reader holds up the writer. Rejects as `request` does: with `BUS_HANDLER_ERROR` where the
   * handler throws at once, with `BUS_CONSUMER_LOST` where it destroys the stream at once. When the other end is
   * lost later, the stream is destroyed with the same codes.
   */
  openStream(address: string, options?: StreamOptions): Promise<Duplex>;
  /** Calls `handler` with each stream that is opened to `address`. Throws as `consumer`. */
  acceptStreams(address: string, handler: StreamHandler, options?: ConsumerOptions): Consumer;
  /**
   * Calls `listener` each time that a consumer of an address ends, anywhere in the program, until the monitor is
   * closed: `closed` by its owner or `lost` with its loop. Where there is none at first it gets `none`, once. On
   * other machines of a cluster it gets one `lost` when no consumer is left, and only while the program has none.
   * A move is no end. Throws `OPTION_INVALID`, `BUS_CLOSED`.
   */
  monitor(target: string, listener: (end: ConsumerEnd) => unknown): Registration;
  /**
   * Calls `listener` each time that an instance of the deployment ends, until the monitor is closed. A deployment
   * that has ended gives `none`, once. Throws `OPTION_INVALID` for what `deploy` did not return here, `BUS_CLOSED`.
   */
  monitor(target: MonitoredDeployment, listener: (end: InstanceEnd) => unknown): Registration;
  /**
   * Adds functions that see every message that is sent in this loop (`outbound`), and that comes to a handler
   * in it (`inbound`), and replies in both directions (`outboundReply`, `inboundReply`), until the registration
   * is closed. Throws `OPTION_INVALID`.
   */
  intercept(interceptors: Interceptors): Registration;
  /**
   * Adds a codec for bodies of a class, or of messages that name it; add it on the sending and the receiving
   * side. Throws `OPTION_INVALID`, also while the loop has another codec of this name or class.
   */
  addCodec<Value, Encoded>(codec: BusCodec<Value, Encoded>): Registration;
  /** Resolves when no sent message waits any more. */
  drained(): Promise<void>;
}
