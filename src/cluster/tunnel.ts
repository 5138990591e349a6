// Bytes in order between a pool and a worker on another machine, over NATS, which may lose what it carries: a
// Duplex stream with offsets, acknowledgements and a window, as TCP has them (RFC 9293), beside which each
// side can tell the other something. Each side has a subject of its own.
//
// Every second each side asks whether the other is there, and says how far it has come: what was lost is
// sent again, also after the server was away. Where the server says for some time that nobody is there
// (503), or nothing comes for longer, the stream is destroyed. That time is counted in questions: while the own
// event loop is blocked none is asked, and what came meanwhile is read before the next.
//
// The stream's end counts as a byte, so that it is acknowledged: a side that has ended stays until the other
// knows.

import { Duplex } from 'node:stream';
import { CodedError } from '../errors.js';
import { announcements, errorOf, messageOf } from '../internal/index.js';
import { clusterClosed } from './errors.js';
import { listen } from './listen.js';
import type { NatsConnection, NatsMessage, NatsSubscription } from './nats.js';
import { readTunnelFrame, type TunnelFrame, tunnelFrame, writeTunnelFrame } from './protocol.js';
import { type Signer, verified } from './signature.js';

/** So much may be on its way, and so much goes in one message, in bytes. */
const windowBytes = 2 ** 20;
const chunkBytes = 2 ** 17;
/** What a frame has besides, in bytes. */
const headroomBytes = 64;
/** So much is taken before it is acknowledged. */
const ackBytes = 2 ** 17;
const probeMs = 1000;
/** Asked so often since the server said that nobody is there, or since anything was heard: it is gone. */
const maxAbsent = 3;
const maxUnanswered = 20;
/** The same where nothing was ever heard: nobody has taken it. */
const maxUntaken = 5;

type Done = (error?: Error | null) => void;

export interface TunnelOptions {
  readonly connection: NatsConnection;
  readonly signer: Signer;
  /** Where this side hears. */
  readonly own: string;
  /** What the other side tells beside the stream. */
  readonly onControl: (message: unknown) => void;
  /** The server says that nobody hears what was published with `own` to answer to. */
  readonly onNobody?: () => void;
  /** Every second until the other side is heard for the first time. */
  readonly onUntaken?: () => void;
}

/** What a frame is signed for: where it goes, and from whom. */
export function tunnelTarget(to: string, from: string): string {
  return `${to}\0${from}`;
}

interface Chunk {
  readonly offset: number;
  readonly bytes: Buffer;
}

export class Tunnel extends Duplex {
  readonly #connection: NatsConnection;
  readonly #signer: Signer;
  readonly #own: string;
  readonly #onControl: (message: unknown) => void;
  readonly #onNobody: () => void;
  readonly #onUntaken: () => void;
  readonly #subscription: NatsSubscription;
  readonly #timer: NodeJS.Timeout;
  #other: string | undefined;
  /** What was written and is not acknowledged. */
  readonly #sent: Chunk[] = [];
  #written = 0;
  #acknowledged = 0;
  #onWindow: (() => void) | undefined;
  /** All was written, and the other side does not know. */
  #onEnd: (() => void) | undefined;
  /** What has come in order, and how much of it the other side knows. */
  #received = 0;
  #receivedAcked = 0;
  #isReading = true;
  /** The other side has ended. */
  #hasEnd = false;
  /** The other side was asked for what is missing from here on. */
  #requestedFrom = -1;
  #isTaken = false;
  /** So often it was asked since it was heard. */
  #unanswered = 0;
  /** The same since the server said that nobody is there; `undefined`: it does not. */
  #absent: number | undefined;

  constructor({
    connection,
    signer,
    own,
    onControl,
    onNobody = () => {},
    onUntaken = () => {},
  }: TunnelOptions) {
    super({ highWaterMark: windowBytes, autoDestroy: true });
    this.#connection = connection;
    this.#signer = signer;
    this.#own = own;
    this.#onControl = onControl;
    this.#onNobody = onNobody;
    this.#onUntaken = onUntaken;
    this.#subscription = listen(connection, own, (message) => this.#receive(message), {
      onError: (thrown) => this.destroy(errorOf(thrown)),
    });
    this.#timer = setInterval(this.#probe, probeMs);
  }

  /** The other side is there, from now on; `isTaken` where it was heard already, which it is told. */
  connect(other: string, isTaken: boolean): void {
    this.#other = other;
    this.#isTaken = isTaken;
    this.#resetSilence();
    if (isTaken) this.#probe();
    for (const { offset, bytes } of this.#sent) this.#post(tunnelFrame.data, offset, bytes);
  }

  #resetSilence(): void {
    this.#unanswered = 0;
    this.#absent = undefined;
  }

  /** Nobody is there: nothing goes to the other side any more, and the stream is destroyed. */
  abandon(): void {
    this.#other = undefined;
    this.destroy();
  }

  /** Beside the stream, at once, at most once; to another who would be the other side, too. */
  sendControl(message: object, other = this.#other): void {
    this.#post(tunnelFrame.control, 0, Buffer.from(JSON.stringify(message)), undefined, other);
  }

  #post(kind: number, offset: number, bytes: Buffer, reply?: string, other = this.#other): void {
    if (other === undefined || this.#connection.isClosed()) return;
    const frame = writeTunnelFrame({ kind, offset, bytes });
    this.#signer.sign(frame, tunnelTarget(other, this.#own));
    try {
      this.#connection.publish(other, frame, reply === undefined ? undefined : { reply });
    } catch {
      // the connection is being closed: the next time it is
    }
  }

  override _write(bytes: Buffer, _encoding: string, done: Done): void {
    const max = this.#connection.info?.max_payload ?? Infinity;
    const sizeBytes = Math.min(chunkBytes, max - headroomBytes);
    for (let at = 0; at < bytes.byteLength; at += sizeBytes) {
      // A copy: whoever wrote it may use its buffer again, and it may be sent again.
      const chunk = Buffer.from(bytes.subarray(at, at + sizeBytes));
      this.#sent.push({ offset: this.#written, bytes: chunk });
      this.#post(tunnelFrame.data, this.#written, chunk);
      this.#written += chunk.byteLength;
    }
    if (this.#written - this.#acknowledged < windowBytes) done();
    else this.#onWindow = done;
  }

  override _final(done: Done): void {
    this.#onEnd = done;
    this.#postEnd();
  }

  #postEnd(): void {
    if (this.#onEnd !== undefined) this.#post(tunnelFrame.end, this.#written, Buffer.alloc(0));
  }

  #ended(): void {
    const done = this.#onEnd;
    this.#onEnd = undefined;
    done?.();
  }

  override _read(): void {
    this.#isReading = true;
    if (this.#received - this.#receivedAcked >= ackBytes) this.#acknowledge();
  }

  #acknowledge(): void {
    this.#receivedAcked = this.#received;
    this.#post(tunnelFrame.ack, this.#received, Buffer.alloc(0));
  }

  override _destroy(error: Error | null, done: Done): void {
    clearInterval(this.#timer);
    if (!this.#connection.isClosed()) this.#subscription.unsubscribe();
    done(error);
  }

  readonly #probe = (): void => {
    if (this.#connection.isClosed()) {
      this.destroy(clusterClosed());
      return;
    }
    this.#unanswered += 1;
    if (this.#absent !== undefined) this.#absent += 1;
    const isAbsent = this.#absent !== undefined && this.#absent > maxAbsent;
    if (isAbsent && this.#hasEnd && this.#onEnd !== undefined) {
      this.#ended(); // it goes when it has all: only its last word was lost
      return;
    }
    const max = this.#isTaken ? maxUnanswered : maxUntaken;
    if (this.#other !== undefined && (isAbsent || this.#unanswered > max)) {
      this.destroy(new CodedError('CLUSTER_WORKER_LOST', 'the other end of a tunnel is gone'));
      return;
    }
    if (!this.#isTaken) {
      this.#onUntaken();
      return;
    }
    this.#post(tunnelFrame.probe, this.#written, Buffer.alloc(0), this.#own);
    this.#postEnd();
  };

  #receive({ subject, data, headers }: NatsMessage): void {
    if (data.byteLength === 0 && headers?.code === 503) {
      this.#absent ??= 0;
      this.#onNobody();
      return;
    }
    try {
      const frame = this.#open(data, subject);
      if (frame !== undefined) this.#take(frame);
    } catch (error) {
      announcements.clusterRefused.publish({ why: messageOf(error) });
    }
  }

  /** What the other side sends; who grants it is no side yet, and is heard here. */
  #open(data: Uint8Array, subject: string): TunnelFrame | undefined {
    const other = this.#other;
    const openFrom = (sender: string): TunnelFrame =>
      readTunnelFrame(verified(this.#signer, data, tunnelTarget(subject, sender)));
    if (other !== undefined) {
      try {
        return openFrom(other);
      } catch {
        // where two grant it
      }
    }
    const { kind, bytes } = openFrom('');
    if (kind === tunnelFrame.control) this.#onControl(parsed(bytes));
    return undefined;
  }

  #take({ kind, offset, bytes }: TunnelFrame): void {
    this.#resetSilence();
    this.#isTaken = true;
    switch (kind) {
      case tunnelFrame.data:
        this.#takeData(offset, bytes);
        break;
      case tunnelFrame.ack:
        this.#takeAck(offset);
        break;
      case tunnelFrame.probe:
        if (offset > this.#received) this.#missing();
        this.#post(
          tunnelFrame.ack,
          this.#isReading ? this.#received : this.#receivedAcked,
          Buffer.alloc(0),
        );
        if (this.#isReading) this.#receivedAcked = this.#received;
        break;
      case tunnelFrame.missing:
        for (const each of this.#sent) {
          if (each.offset >= offset) this.#post(tunnelFrame.data, each.offset, each.bytes);
        }
        this.#postEnd();
        break;
      case tunnelFrame.control:
        this.#onControl(parsed(bytes));
        break;
      case tunnelFrame.end:
        this.#takeEnd(offset);
        break;
    }
  }

  #takeEnd(offset: number): void {
    if (offset > this.#received) {
      this.#missing();
      return;
    }
    if (!this.#hasEnd) {
      this.#hasEnd = true;
      this.#received += 1;
      this.push(null);
    }
    this.#acknowledge();
  }

  #takeData(offset: number, bytes: Buffer): void {
    if (offset > this.#received) {
      if (this.#requestedFrom !== this.#received) this.#missing();
      return;
    }
    if (offset < this.#received) return; // sent again, and not needed
    this.#received += bytes.byteLength;
    this.#isReading = this.push(bytes);
    if (this.#isReading && this.#received - this.#receivedAcked >= ackBytes) this.#acknowledge();
  }

  #missing(): void {
    this.#requestedFrom = this.#received;
    this.#post(tunnelFrame.missing, this.#received, Buffer.alloc(0));
  }

  #takeAck(offset: number): void {
    const last = this.#onEnd === undefined ? this.#written : this.#written + 1;
    if (!(offset > this.#acknowledged && offset <= last)) return;
    this.#acknowledged = offset;
    if (offset > this.#written) this.#ended();
    const kept = this.#sent.findIndex((each) => each.offset >= offset);
    this.#sent.splice(0, kept < 0 ? this.#sent.length : kept);
    if (this.#written - this.#acknowledged >= windowBytes) return;
    const done = this.#onWindow;
    this.#onWindow = undefined;
    done?.();
  }
}

/** `undefined` for what is no JSON. */
function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString());
  } catch {
    return undefined;
  }
}
