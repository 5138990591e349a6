// What goes to the NATS server: at once while there is a connection, else when it is back. The client drops
// what it is given without a connection, so nothing is given to it then; and it takes whatever it is given
// with one, so what the server has not confirmed is counted. Both are bounded.

import { CodedError } from '../errors.js';
import { clusterClosed } from './errors.js';
import type { NatsConnection } from './nats.js';

/** What may wait for a connection, or for the server to confirm it. */
const maxFrames = 10_000;
const maxBytes = 2 ** 24;
/** From here on senders hear that they are too fast. */
const manyBytes = 2 ** 20;
/** So much, or so long, goes without being confirmed; in ms. */
const confirmBytes = 2 ** 16;
const confirmMs = 100;
/**
 * What waited for a connection goes out so long after it is back, in ms: others come back at about the same
 * time, and before they do nobody hears it.
 */
const settleMs = 1500;

interface Frame {
  readonly subject: string;
  readonly bytes: Buffer;
  readonly reply: string | undefined;
}

type Finish = (subject: string, bytes: Buffer, reply: string | undefined) => void;

export class Outbox {
  /** There is room again. */
  onDrain: () => void = () => {};
  readonly #connection: NatsConnection;
  readonly #finish: Finish;
  #waiting: Frame[] = [];
  #waitingBytes = 0;
  #isConnected = true;
  /** Of what was given to the client and not confirmed. */
  #openBytes = 0;
  #openFrames = 0;
  /** Of them, what the confirmation on its way is for. */
  #isConfirming = false;
  #timer: NodeJS.Timeout | undefined;
  #settling: NodeJS.Timeout | undefined;

  /** `finish` is called with each frame when it goes out. */
  constructor(connection: NatsConnection, finish: Finish) {
    this.#connection = connection;
    this.#finish = finish;
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
      const why = this.#isConnected ? 'reads slower' : 'is not there';
      const text = `${this.#waiting.length} messages wait for the NATS server, which ${why}`;
      throw new CodedError(
        'BUS_FULL',
        `${text}: send less, and await drained() where send() is false`,
      );
    }
    this.#waiting.push({ subject, bytes, reply });
    this.#waitingBytes += bytes.byteLength;
  }

  #give({ subject, bytes, reply }: Frame): void {
    this.#finish(subject, bytes, reply);
    try {
      this.#connection.publish(subject, bytes, reply === undefined ? undefined : { reply });
    } catch (error) {
      throw this.#connection.isDraining() ? clusterClosed() : error; // the last has gone out
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
      this.#isConfirming = false; // the connection is gone, and `disconnected` is called
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
        break; // the connection is being closed
      }
    }
    if (this.hasRoom) this.onDrain();
  }

  /** What waits goes out now, where there is a connection: it is to be closed. */
  hurry(): void {
    if (this.#settling !== undefined) this.#settle();
  }

  /** Answers how many frames may not have reached the server. */
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

  /** Nothing goes any more; answers how many frames waited. */
  close(): number {
    const frames = this.#waiting.length;
    this.disconnected();
    this.#waiting = [];
    this.#waitingBytes = 0;
    return frames;
  }
}
