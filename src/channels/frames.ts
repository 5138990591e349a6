// Frames in a byte stream, as the socket and the memory channel share them. A frame is a header, [u32 body
// size][i32 kind][i32 task][i32 target], and its body. A size that no body can have marks the orderly end, so
// that no number of the caller's is taken from it.
// Not here: streams and ports (socket/, memory/), when to write and whom to call (framed.ts).

import { CodedError } from '../errors.js';
import { ByteReader, ByteWriter, frameBytes } from './bytes.js';
import type { BodyWriter, FrameListener } from './types.js';

const headerBytes = 16;
/** Largest body: as much as one buffer of Node can hold everywhere, less a page. */
const maxBodyBytes = 0x7fff_f000;
const goodbyeMark = 0xffff_ffff;
const goodbyeRest = Buffer.alloc(headerBytes - 4);

/** Frames that were written and not yet handed over, one after the other. */
export class FrameBatch {
  readonly writer: ByteWriter;

  constructor(buffer: Buffer) {
    this.writer = new ByteWriter(buffer, true);
  }

  /** Bytes in the batch; 0: nothing to hand over. */
  get sizeBytes(): number {
    return this.writer.position;
  }

  /** Adds a whole frame, or nothing and returns false: `write` refused, or the body is too large. */
  add<T>(kind: number, task: number, target: number, write: BodyWriter<T>, value: T): boolean {
    const writer = this.writer;
    const start = writer.position;
    let isWhole = false;
    try {
      writer.hasRoom(headerBytes);
      writer.position = start + headerBytes;
      isWhole = write(writer, value) && writer.position - start - headerBytes <= maxBodyBytes;
    } finally {
      if (!isWhole) writer.position = start;
    }
    if (!isWhole) return false;
    writer.view.setUint32(start, writer.position - start - headerBytes, true);
    writer.view.setInt32(start + 4, kind, true);
    writer.view.setInt32(start + 8, task, true);
    writer.view.setInt32(start + 12, target, true);
    return true;
  }

  /** Adds the mark that nothing follows from this side. */
  addGoodbye(): void {
    this.writer.u32(goodbyeMark);
    this.writer.raw(goodbyeRest);
  }

  /** Returns the bytes so far; the batch is then empty, and its buffer is the caller's. */
  take(next: Buffer): Buffer {
    const writer = this.writer;
    const taken = writer.bytes.subarray(0, writer.position);
    writer.bytes = frameBytes(next);
    writer.view = new DataView(next.buffer, next.byteOffset, next.byteLength);
    writer.reset(0, next.byteLength);
    return taken;
  }
}

/** A parser's owner. Its methods must not throw. */
export interface FrameSink {
  onFrame: FrameListener;
  onGoodbye: () => void;
}

/**
 * Takes a stream in pieces that may end anywhere. Frames that lie whole in a piece are read in place; a body
 * that spans pieces is gathered in one buffer of its exact size.
 */
export class FrameParser {
  readonly #sink: FrameSink;
  readonly #maxBodyBytes: number;
  readonly #reader: ByteReader;
  /** A header in parts, and the number of its bytes that are there. */
  readonly #header: Buffer;
  readonly #headerView: DataView;
  #headerSize: number;
  /** A body in parts, behind the header above. */
  #body: Buffer | undefined;
  #bodySize: number;
  #isStopped: boolean;

  /** A body larger than `limitBytes` is not a frame. */
  constructor(sink: FrameSink, limitBytes = maxBodyBytes) {
    this.#sink = sink;
    this.#maxBodyBytes = limitBytes;
    this.#reader = new ByteReader(Buffer.alloc(0));
    this.#header = Buffer.alloc(headerBytes);
    this.#headerView = new DataView(this.#header.buffer, this.#header.byteOffset, headerBytes);
    this.#headerSize = 0;
    this.#body = undefined;
    this.#bodySize = 0;
    this.#isStopped = false;
  }

  /** Ignores all further bytes, also the rest of the current piece. */
  stop(): void {
    this.#isStopped = true;
    this.#body = undefined;
  }

  /** Calls the sink for each frame that is now complete. Throws CHANNEL_FRAME_CORRUPT. */
  push(piece: Buffer): void {
    if (this.#isStopped) return;
    let position = 0;
    if (this.#headerSize > 0) position = this.#finishPartial(piece);
    const end = piece.byteLength;
    if (position >= end || this.#isStopped) return;
    const view = new DataView(piece.buffer, piece.byteOffset, end);
    const reader = this.#reader;
    while (end - position >= headerBytes && !this.#isStopped) {
      const size = view.getUint32(position, true);
      if (size > this.#maxBodyBytes) {
        this.#takeMark(size);
        position += headerBytes;
        continue;
      }
      const bodyEnd = position + headerBytes + size;
      if (bodyEnd > end) break;
      reader.bytes = frameBytes(piece);
      reader.view = view;
      reader.reset(position + headerBytes, bodyEnd);
      this.#sink.onFrame(
        view.getInt32(position + 4, true),
        view.getInt32(position + 8, true),
        view.getInt32(position + 12, true),
        reader,
      );
      position = bodyEnd;
    }
    if (position < end && !this.#isStopped) this.#beginPartial(piece, position);
  }

  #takeMark(mark: number): void {
    if (mark === goodbyeMark) this.#sink.onGoodbye();
    else throw new CodedError('CHANNEL_FRAME_CORRUPT', `a frame of ${mark} bytes is too large`);
  }

  #beginPartial(piece: Buffer, position: number): void {
    const header = Math.min(headerBytes, piece.byteLength - position);
    piece.copy(this.#header, 0, position, position + header);
    this.#headerSize = header;
    if (header < headerBytes) return;
    this.#beginBody();
    this.#fillBody(piece, position + header);
  }

  #beginBody(): void {
    const size = this.#headerView.getUint32(0, true);
    if (size > this.#maxBodyBytes) return;
    try {
      this.#body = Buffer.allocUnsafeSlow(size);
    } catch (cause) {
      const message = `no memory for a frame of ${size} bytes`;
      throw new CodedError('CHANNEL_FRAME_CORRUPT', message, { cause });
    }
    this.#bodySize = 0;
  }

  /** Copies what the body still lacks; returns the position behind it. */
  #fillBody(piece: Buffer, position: number): number {
    const body = this.#body;
    if (body === undefined) return position;
    const end = Math.min(piece.byteLength, position + body.byteLength - this.#bodySize);
    piece.copy(body, this.#bodySize, position, end);
    this.#bodySize += end - position;
    return end;
  }

  /** Returns the position in `piece` behind the frame that it completes, or its end. */
  #finishPartial(piece: Buffer): number {
    let position = 0;
    if (this.#headerSize < headerBytes) {
      position = Math.min(piece.byteLength, headerBytes - this.#headerSize);
      piece.copy(this.#header, this.#headerSize, 0, position);
      this.#headerSize += position;
      if (this.#headerSize < headerBytes) return position;
      this.#beginBody();
    }
    const header = this.#headerView;
    const body = this.#body;
    if (body === undefined) {
      this.#headerSize = 0;
      this.#takeMark(header.getUint32(0, true));
      return position;
    }
    position = this.#fillBody(piece, position);
    if (this.#bodySize < body.byteLength) return position;
    this.#body = undefined;
    this.#headerSize = 0;
    this.#sink.onFrame(
      header.getInt32(4, true),
      header.getInt32(8, true),
      header.getInt32(12, true),
      new ByteReader(body),
    );
    return position;
  }
}
