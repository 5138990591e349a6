// Messages to the NATS server: sent at once over a connection, otherwise queued until it is back. Without a
// connection the client drops messages, so they wait here. With one the client accepts any amount, so
// unconfirmed bytes are counted here. Both amounts are bounded.

import { CodedError } from '../../errors.js';
import { clusterClosed } from '../errors.js';
import type { NatsConnection } from './nats.js';

/** Limits of waiting frames, and of bytes waiting or unconfirmed. */
const maxFrames = 10_000;
const maxBytes = 2 ** 24;
/** From this amount on senders are slowed down (`hasRoom` is false). */
const manyBytes = 2 ** 20;
/** Unconfirmed bytes, or ms since the first of them, after which a confirmation is requested. */
const confirmBytes = 2 ** 16;
const confirmMs = 100;
/**
 * Delay between a reconnect and the waiting messages, in ms: the receivers reconnect at about the same
 * time, and messages before that are lost.
 */
const settleMs = 1500;

interface Frame {
  readonly subject: string;
  readonly bytes: Buffer;
  readonly reply: string | undefined;
}

export interface OutboxListener {
  /** Completes a frame when it is sent. */
  finish(subject: string, bytes: Buffer, reply: string | undefined): void;
  /** There is room again. */
  drained(): void;
}

export class Outbox {
  readonly #connection: NatsConnection;
  readonly #listener: OutboxListener;
  #waiting: Frame[] = [];
  #waitingBytes = 0;
  #isConnected = true;
  /** Frames and bytes given to the client and not confirmed. */
  #openBytes = 0;
  #openFrames = 0;
  /** True: a confirmation is on its way. */
  #isConfirming = false;
  #timer: NodeJS.Timeout | undefined;
  #settling: NodeJS.Timeout | undefined;

  constructor(connection: NatsConnection, listener: OutboxListener) {
    this.#connection = connection;
    this.#listener = listener;
  }

  get isConnected(): boolean {
    return this.#isConnected;
  }

  get hasRoom(): boolean {
    return this.#waiting.length === 0 && this.#openBytes < manyBytes;
  }

  /** Throws `BUS_FULL`, `CLUSTER_CLOSED`. */
  publish(subject: string, bytes: Buffer, reply?: string): void {
    if (this.#connection.isClosed()) throw clusterClosed();
    if (this.#isConnected && this.#openBytes < maxBytes) {
      this.#give({ subject, bytes, reply });
      return;
    }
    if (this.#waiting.length >= maxFrames || this.#waitingBytes >= maxBytes) {
      const why = this.#isConnected ? 'reads more slowly' : 'is not connected';
      const text = `${this.#waiting.length} messages wait for the NATS server, which ${why}`;
      throw new CodedError(
        'BUS_FULL',
        `${text}: send more slowly, and await drained() when send() returns false`,
      );
    }
    this.#waiting.push({ subject, bytes, reply });
    this.#waitingBytes += bytes.byteLength;
  }

  #give({ subject, bytes, reply }: Frame): void {
    this.#listener.finish(subject, bytes, reply);
    try {
      this.#connection.publish(subject, bytes, reply === undefined ? undefined : { reply });
    } catch (error) {
      throw this.#connection.isDraining() ? clusterClosed() : error; // its last message was sent
    }
    this.#openFrames += 1;
    this.#openBytes += bytes.byteLength;
    if (this.#openBytes >= confirmBytes) this.#confirm();
    else this.#timer ??= setTimeout(this.#confirm, confirmMs).unref();
  }

  readonly #confirm = (): void => {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#isConfirming || !this.#isConnected || this.#openFrames === 0) return;
    this.#isConfirming = true;
    const [frames, bytes] = [this.#openFrames, this.#openBytes];
    const confirmed = (): void => {
      this.#isConfirming = false;
      this.#openFrames -= frames;
      this.#openBytes -= bytes;
      this.#release();
      if (this.#openFrames > 0) this.#timer ??= setTimeout(this.#confirm, confirmMs).unref();
    };
    this.#connection.flush().then(confirmed, () => {
      this.#isConfirming = false; // the connection is lost, and `disconnected` is called
    });
  };

  #release(): void {
    while (this.#isConnected && this.#openBytes < maxBytes) {
      const frame = this.#waiting.shift();
      if (frame === undefined) break;
      this.#waitingBytes -= frame.bytes.byteLength;
      try {
        this.#give(frame);
      } catch {
        break; // the connection is closing
      }
    }
    if (this.hasRoom) this.#listener.drained();
  }

  /** Sends waiting messages now if there is a connection: it is about to close. */
  sendNow(): void {
    if (this.#settling !== undefined) this.#settle();
  }

  /** Returns how many frames may not have reached the server. */
  disconnected(): number {
    this.#isConnected = false;
    clearTimeout(this.#settling);
    this.#settling = undefined;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const frames = this.#openFrames;
    this.#openFrames = 0;
    this.#openBytes = 0;
    return frames;
  }

  reconnected(): void {
    clearTimeout(this.#settling);
    this.#settling = setTimeout(() => this.#settle(), settleMs);
  }

  #settle(): void {
    clearTimeout(this.#settling);
    this.#settling = undefined;
    this.#isConnected = true;
    this.#isConfirming = false;
    this.#release();
  }

  /** Stops sending; returns how many frames were waiting. */
  close(): number {
    const frames = this.#waiting.length;
    this.disconnected();
    this.#waiting = [];
    this.#waitingBytes = 0;
    return frames;
  }
}
