// The bus as programs see it: one contract for the bus of a loop and for what a unit gets of it.

import type { Duplex } from 'node:stream';
import type { BusAddress } from './address.js';
import type { BusCodec, Registration } from './codecs.js';
import type { Consumer } from './consumer.js';
import type { Interceptors } from './interceptors.js';
import type { BusHeaders, BusMessage, ReplyRequestOptions } from './message.js';
import type { Locality } from './receivers.js';
import type { StreamHandler, StreamOptions } from './streams.js';

export interface SendOptions {
  readonly headers?: BusHeaders | undefined;
  /**
   * Consumers of this loop alone (`only`), or before those of others (`prefer`, not for `publish`).
   * Default: all by turns.
   */
  readonly local?: Locality;
  /** The name of the codec for the body. Default: that of its class, if there is one. */
  readonly codec?: string | undefined;
}

export interface ConsumerOptions {
  /** As many messages wait while it is paused; what comes then is dropped. Default: 1,000. */
  readonly maxBuffered?: number | undefined;
  /** Only what is sent in this loop comes. Default: false. */
  readonly isLocal?: boolean | undefined;
}

/** Called for one message after the other; the next one does not wait for a promise that it returns. */
export type Handler<Body = unknown> = (message: BusMessage<Body>) => unknown;

export interface BusStats {
  readonly sent: number;
  readonly received: number;
  /** Sent to an address that nobody consumed. */
  readonly undelivered: number;
  /** Lost at consumers where too many waited. */
  readonly dropped: number;
}

export interface Bus {
  readonly stats: BusStats;
  /**
   * Calls `handler` for what is sent to `address`, until the consumer is closed. What the handler throws
   * is the answer to a request; without one it is thrown as by a listener of an event. Throws
   * `OPTION_INVALID`, `BUS_CLOSED`.
   */
  consumer<Body = unknown>(
    address: string,
    handler: Handler<Body>,
    options?: ConsumerOptions,
  ): Consumer;
  /**
   * To every consumer of `address`. False when something waits now: whoever has much to send awaits
   * `drained()` then. Throws `OPTION_INVALID`, `BUS_CLOSED`, `BUS_FULL`, `BUS_CODEC_FAILED`, or `TRANSFER_…`
   * for a body that cannot travel: then nobody has it.
   */
  publish(address: string, body: unknown, options?: SendOptions): boolean;
  /** To one consumer of `address`, by turns. Answers and throws as `publish` does. */
  send(address: string, body: unknown, options?: SendOptions): boolean;
  /**
   * To one consumer of `address`, by turns; resolves with its answer. Rejects with `BUS_NO_HANDLERS`,
   * `BUS_TIMEOUT`, `BUS_FAILED`, `BUS_HANDLER_ERROR`, `BUS_CONSUMER_LOST`, `BUS_INTERCEPTED`, `ABORTED`,
   * and with what `publish` throws.
   */
  request<Body = unknown>(
    address: string,
    body: unknown,
    options?: SendOptions & ReplyRequestOptions,
  ): Promise<BusMessage<Body>>;
  /** What this bus can do with one address, with types. Throws `OPTION_INVALID`. */
  address<Request = unknown, Reply = unknown>(name: string): BusAddress<Request, Reply>;
  /**
   * A stream to one of those that accept streams at `address`, by turns: both ends are Duplex streams for
   * values of any kind, and a reader that is slow holds up the writer. Rejects as `request` does; where the
   * other end is lost later, the stream is destroyed with `BUS_CONSUMER_LOST`.
   */
  openStream(address: string, options?: StreamOptions): Promise<Duplex>;
  /** Calls `handler` with each stream that somebody opens to `address`. Throws as `consumer`. */
  acceptStreams(address: string, handler: StreamHandler, options?: ConsumerOptions): Consumer;
  /**
   * Functions that see every message that is sent in this loop (`outbound`), and that comes to a handler in
   * it (`inbound`), whoever sends or handles it, until the answer of this is closed. Throws `OPTION_INVALID`.
   */
  intercept(interceptors: Interceptors): Registration;
  /**
   * How bodies of a class, or of messages that name this codec, travel; to be added wherever they are sent,
   * and where they come. Throws `OPTION_INVALID`.
   */
  addCodec<Value, Encoded>(codec: BusCodec<Value, Encoded>): Registration;
  /** Resolves when nothing that was sent waits any more. */
  drained(): Promise<void>;
}
