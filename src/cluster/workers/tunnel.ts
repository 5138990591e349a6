// An ordered byte stream between a pool and a worker on another machine, over NATS, which may lose
// messages. It is a Duplex stream with offsets, acknowledgements and a window, as in TCP (RFC 9293), plus
// control messages beside the stream. Each side has a subject of its own.
//
// Every second each side sends a probe with its offset: lost bytes are sent again, also after an outage of
// the server. The stream is destroyed when the server reports no subscriber (503) for some time, or when
// nothing arrives for longer. Time is counted in probes: a blocked event loop sends none, and reads the
// messages of that time before the next.
//
// The end of the stream counts as one byte, so that it is acknowledged: a side that has ended stays until
// then.

import { Duplex } from 'node:stream';
import { CodedError } from '../../errors.js';
import { announcements, errorOf, messageOf } from '../../lib/index.js';
import { type Signer, verified } from '../bus/signature.js';
import { clusterClosed } from '../errors.js';
import { listen } from '../nats/listen.js';
import type { NatsConnection, NatsMessage, NatsSubscription } from '../nats/nats.js';
import { readTunnelFrame, type TunnelFrame, tunnelFrame, writeTunnelFrame } from '../protocol.js';

/** Limits of unacknowledged bytes, and of one message. */
const windowBytes = 2 ** 20;
const chunkBytes = 2 ** 17;
/** Bytes of a frame beside its data. */
const headroomBytes = 64;
/** Received bytes after which an acknowledgement is sent. */
const ackBytes = 2 ** 17;
const probeMs = 1000;
/** Probes without a message, after a 503 and in general, until the other side counts as gone. */
const maxAbsent = 3;
const maxUnanswered = 20;
/** The same when no message ever arrived: the grant was not accepted. */
const maxUntaken = 5;

type Done = (error?: Error | null) => void;

export interface TunnelOptions {
  readonly connection: NatsConnection;
  readonly signer: Signer;
  /** Subject of this side. */
  readonly own: string;
  /** Called with control messages of the other side. */
  readonly onControl: (message: unknown) => void;
  /** Called when the server reports no subscriber for a message with `own` as its reply subject. */
  readonly onNobody?: () => void;
  /** Called every second until the first message of the other side. */
  readonly onUntaken?: () => void;
}

/** Returns the target that a frame's signature covers: its subject and its sender. */
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
  /** Written bytes that are not acknowledged. */
  readonly #sent: Chunk[] = [];
  #written = 0;
  #acknowledged = 0;
  #onWindow: (() => void) | undefined;
  /** Called when the other side has acknowledged the end. */
  #onEnd: (() => void) | undefined;
  /** Bytes received in order, and how many of them are acknowledged. */
  #received = 0;
  #receivedAcked = 0;
  #isReading = true;
  /** The other side has ended. */
  #hasEnd = false;
  /** Offset from which missing bytes were last requested. */
  #requestedFrom = -1;
  #isTaken = false;
  /** Probes since the last message. */
  #unanswered = 0;
  /** Probes since the server reported no subscriber; `undefined`: it has not. */
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

  /** Sets the other side. `isTaken`: it has sent already, and gets a probe at once as confirmation. */
  connect(other: string, isTaken: boolean): void {
    this.#other = other;
    this.#isTaken = isTaken;
    this.#resetLiveness();
    if (isTaken) this.#probe();
    for (const { offset, bytes } of this.#sent) this.#post(tunnelFrame.data, offset, bytes);
  }

  #resetLiveness(): void {
    this.#unanswered = 0;
    this.#absent = undefined;
  }

  /** Gives up the other side: sends nothing more and destroys the stream. */
  abandon(): void {
    this.#other = undefined;
    this.destroy();
  }

  /** Sends beside the stream, at once, at most once; also to a second candidate for the other side. */
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
      // the connection is closing; the next probe finds it closed
    }
  }

  override _write(bytes: Buffer, _encoding: string, done: Done): void {
    const max = this.#connection.info?.max_payload ?? Infinity;
    const sizeBytes = Math.min(chunkBytes, max - headroomBytes);
    for (let at = 0; at < bytes.byteLength; at += sizeBytes) {
      // A copy: the writer may reuse its buffer, and the bytes may have to be sent again.
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
      this.#ended(); // the other side ends once it has all bytes: only the last acknowledgement was lost
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

  /** Returns a frame of the other side. A grant comes from a sender that is no side yet: handled here. */
  #open(data: Uint8Array, subject: string): TunnelFrame | undefined {
    const other = this.#other;
    const openFrom = (sender: string): TunnelFrame =>
      readTunnelFrame(verified(this.#signer, data, tunnelTarget(subject, sender)));
    if (other !== undefined) {
      try {
        return openFrom(other);
      } catch {
        // not from the accepted side: two nodes granted the request
      }
    }
    const { kind, bytes } = openFrom('');
    if (kind === tunnelFrame.control) this.#onControl(parsed(bytes));
    return undefined;
  }

  #take({ kind, offset, bytes }: TunnelFrame): void {
    this.#resetLiveness();
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
    if (offset < this.#received) return; // repeated bytes
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

/** Returns `undefined` for bytes that are no JSON. */
function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString());
  } catch {
    return undefined;
  }
}
