// Large bodies in pieces, between ends that share no arena: a frame for each piece, all with the size of the whole.
// The sender keeps a copy of what has no room yet, of one body at a time. The receiver gathers them in memory of its own.

import { CodedError } from '../../errors.js';
import { ByteReader, ByteWriter } from '../bytes.js';
import type { BodyWriter } from '../types.js';
import type { LargeBodies } from './large-bodies.js';
import { frameHeaderBytes, spillFlag } from './layout.js';
import type { RingWriter, WriteOutcome } from './ring-writer.js';

/** Bytes of a piece's own head: the size of the whole body, as a float64. */
const pieceHeadBytes = 8;

/** The header of a frame: each piece repeats it. */
interface Header {
  readonly kind: number;
  readonly task: number;
  readonly target: number;
}

interface Outgoing extends Header {
  readonly bytes: Buffer;
  sentBytes: number;
}

interface Incoming extends Header {
  readonly bytes: Buffer;
  filledBytes: number;
}

interface Piece {
  readonly wholeBytes: number;
  readonly bytes: Uint8Array;
}

function writePiece(writer: ByteWriter, { wholeBytes, bytes }: Piece): boolean {
  writer.f64(wholeBytes);
  writer.raw(bytes);
  return true;
}

function corrupt(what: string): CodedError {
  return new CodedError('SEGMENT_CORRUPT', `${what}: the channel is closed`);
}

export class Pieces implements LargeBodies {
  readonly #pieceBytes: number;
  readonly #maxBodyBytes: number;
  readonly writtenBytes = 0; // all of it is in the ring's own count
  readonly readBytes = 0;
  #outgoing: Outgoing | undefined;
  #incoming: Incoming | undefined;

  /** `maxBodyBytes`: a larger body of the peer ends the channel. */
  constructor(ringBytes: number, maxBodyBytes: number) {
    this.#pieceBytes = ringBytes / 4 - frameHeaderBytes - pieceHeadBytes;
    this.#maxBodyBytes = maxBodyBytes;
  }

  get isWaiting(): boolean {
    return this.#outgoing !== undefined;
  }

  /** Takes the body, whole: `resume` follows until all of it is sent. */
  write<T>(
    ring: RingWriter,
    kind: number,
    task: number,
    target: number,
    write: BodyWriter<T>,
    value: T,
  ): Exclude<WriteOutcome, 'tooLarge'> {
    const writer = ByteWriter.growing(1 << 17);
    if (!write(writer, value)) return 'refused';
    const bytes = writer.bytes.subarray(0, writer.position);
    this.#outgoing = { kind, task, target, bytes, sentBytes: 0 };
    const outcome = this.resume(ring);
    return outcome === 'full' ? 'sent' : outcome;
  }

  resume(ring: RingWriter): 'sent' | 'full' | 'corrupt' {
    const body = this.#outgoing;
    if (body === undefined) return 'sent';
    const { kind, task, target, bytes } = body;
    while (body.sentBytes < bytes.byteLength) {
      const end = Math.min(body.sentBytes + this.#pieceBytes, bytes.byteLength);
      const piece = { wholeBytes: bytes.byteLength, bytes: bytes.subarray(body.sentBytes, end) };
      const outcome = ring.write(kind, task, target, writePiece, piece, spillFlag);
      if (outcome === 'full') return outcome;
      if (outcome !== 'sent') return 'corrupt';
      body.sentBytes = end;
    }
    this.#outgoing = undefined;
    return 'sent';
  }

  /** The peer may still change the bytes of `frame`: each is read once. */
  read(kind: number, task: number, target: number, frame: ByteReader): ByteReader | undefined {
    const { wholeBytes, sizeBytes } = this.#checked(frame);
    this.#incoming ??= { kind, task, target, bytes: this.#allocate(wholeBytes), filledBytes: 0 };
    const body = this.#incoming;
    const isNext = body.kind === kind && body.task === task && body.target === target;
    const end = body.filledBytes + sizeBytes;
    const isFull = sizeBytes === this.#pieceBytes || end === wholeBytes; // so that none comes in countless frames
    if (!isNext || !isFull || wholeBytes !== body.bytes.byteLength || end > wholeBytes) {
      throw corrupt('a piece does not belong to the body that has begun');
    }
    frame.bytes.copy(body.bytes, body.filledBytes, frame.position, frame.limit);
    body.filledBytes = end;
    if (end < wholeBytes) return undefined;
    this.#incoming = undefined;
    return new ByteReader(body.bytes, true);
  }

  #checked(frame: ByteReader): { readonly wholeBytes: number; readonly sizeBytes: number } {
    let wholeBytes = -1;
    try {
      wholeBytes = frame.f64();
    } catch {
      // A frame without a size is as wrong as one with another.
    }
    const sizeBytes = frame.limit - frame.position;
    if (!Number.isInteger(wholeBytes) || wholeBytes <= 0 || sizeBytes <= 0) {
      throw corrupt(`a piece of ${sizeBytes} bytes is of a body of ${wholeBytes}`);
    }
    return { wholeBytes, sizeBytes };
  }

  #allocate(wholeBytes: number): Buffer {
    if (wholeBytes <= this.#maxBodyBytes) return Buffer.allocUnsafeSlow(wholeBytes);
    const most = this.#maxBodyBytes;
    const message = `a frame of ${wholeBytes} bytes is too large, ${most} are the most: the channel is closed`;
    throw new CodedError('CHANNEL_FRAME_CORRUPT', message);
  }

  end(): void {
    this.peerEnded();
    this.#incoming = undefined;
  }

  peerEnded(): void {
    this.#outgoing = undefined;
  }
}
