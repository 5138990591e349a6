// Cursors over bytes: every frame on every channel is written with one and read with one. Plain classes with
// the same fields in the same order, so that V8 keeps one shape for each: this is the hottest code of the
// package (bench/cases/throughput). Multi-byte numbers are little-endian, unaligned.
// Not here: what the bytes mean (codec/), where they go (shm/, socket/, memory/).

import { CodedError } from '../errors.js';
import { messageOf } from '../lib/index.js';

const growthFactor = 2;

/** Methods in all versions of Node but not in its types: `toString` and `write` cost half as much again. */
interface FastStrings {
  latin1Slice(start: number, end: number): string;
  ucs2Slice(start: number, end: number): string;
  utf8Write(text: string, offset: number, sizeBytes: number): number;
}

type FrameBytes = Buffer & FastStrings;

function hasFastStrings(bytes: Buffer): bytes is FrameBytes {
  return 'latin1Slice' in bytes && 'ucs2Slice' in bytes && 'utf8Write' in bytes;
}

/** Returns `bytes` with these methods. Throws `INTERNAL_STATE` where the runtime has none. */
export function frameBytes(bytes: Buffer): FrameBytes {
  if (hasFastStrings(bytes)) return bytes;
  throw new CodedError('INTERNAL_STATE', 'this runtime is not Node: its buffers lack latin1Slice');
}

/**
 * Throws `INTERNAL_STATE` where the program has replaced `Buffer.from` by something that behaves differently:
 * every frame would be wrong.
 */
export function checkBuffers(): void {
  const memory = new Uint8Array([1, 2, 3]).buffer;
  let why = 'it gives something else';
  try {
    const [text, part] = [Buffer.from('\xe9', 'latin1'), Buffer.from(memory, 1, 2)];
    const isRight = Buffer.isBuffer(text) && Buffer.isBuffer(part) && part.buffer === memory;
    if (isRight && text.join() === '233' && part.join() === '2,3') return;
  } catch (cause) {
    why = `it throws ${messageOf(cause)}`;
  }
  throw new CodedError(
    'INTERNAL_STATE',
    `this program has replaced Buffer.from (${why}): put Node's own back`,
  );
}

/**
 * Writes at `position`, never at or past `limit`. Bytes of a fixed writer (a ring) end at `limit`: a write
 * that does not fit sets `overflowed`, writes nothing, and later writes are ignored too; the owner checks
 * once, at the end. A growing writer (heap) enlarges its buffer instead.
 */
export class ByteWriter {
  bytes: FrameBytes;
  view: DataView;
  position: number;
  limit: number;
  overflowed: boolean;
  readonly canGrow: boolean;

  constructor(bytes: Buffer, canGrow: boolean) {
    this.bytes = frameBytes(bytes);
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.position = 0;
    this.limit = bytes.byteLength;
    this.overflowed = false;
    this.canGrow = canGrow;
  }

  /** A heap writer that grows as needed. */
  static growing(initialBytes = 1024): ByteWriter {
    return new ByteWriter(Buffer.allocUnsafeSlow(initialBytes), true);
  }

  /** Starts over at `position`, up to `limit` (half-open). */
  reset(position: number, limit: number): void {
    this.position = position;
    this.limit = limit;
    this.overflowed = false;
  }

  /** Makes room for `sizeBytes` more; false (and `overflowed`) when there is none. */
  hasRoom(sizeBytes: number): boolean {
    if (this.position + sizeBytes <= this.limit) return !this.overflowed;
    if (!this.canGrow) {
      this.overflowed = true;
      return false;
    }
    this.#grow(this.position + sizeBytes);
    return true;
  }

  #grow(neededBytes: number): void {
    const larger = Buffer.allocUnsafeSlow(Math.max(neededBytes, this.limit * growthFactor));
    this.bytes.copy(larger, 0, 0, this.position);
    this.bytes = frameBytes(larger);
    this.view = new DataView(larger.buffer, larger.byteOffset, larger.byteLength);
    this.limit = larger.byteLength;
  }

  u8(value: number): void {
    if (!this.hasRoom(1)) return;
    this.view.setUint8(this.position, value);
    this.position += 1;
  }

  i32(value: number): void {
    if (!this.hasRoom(4)) return;
    this.view.setInt32(this.position, value, true);
    this.position += 4;
  }

  u32(value: number): void {
    if (!this.hasRoom(4)) return;
    this.view.setUint32(this.position, value, true);
    this.position += 4;
  }

  f64(value: number): void {
    if (!this.hasRoom(8)) return;
    this.view.setFloat64(this.position, value, true);
    this.position += 8;
  }

  /** The bytes themselves, without a length. */
  raw(source: Uint8Array): void {
    if (!this.hasRoom(source.byteLength)) return;
    this.bytes.set(source, this.position);
    this.position += source.byteLength;
  }

  /** A copy of what was written from `start` on; a small one lies in Node's pool of buffers. */
  copyFrom(start: number): Buffer {
    const copy = Buffer.allocUnsafe(this.position - start);
    copy.set(this.bytes.subarray(start, this.position));
    return copy;
  }
}

/**
 * Reads at `position`, never at or past `limit`. The bytes are input from another process: a read
 * past the limit throws `CHANNEL_FRAME_CORRUPT`, and lengths are checked before they are used.
 */
export class ByteReader {
  bytes: FrameBytes;
  view: DataView;
  position: number;
  limit: number;
  /** True: nothing else uses the memory, and a large value may stay in it. */
  readonly isOwn: boolean;

  constructor(bytes: Buffer, isOwn = false) {
    this.bytes = frameBytes(bytes);
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.position = 0;
    this.limit = bytes.byteLength;
    this.isOwn = isOwn;
  }

  reset(position: number, limit: number): void {
    this.position = position;
    this.limit = limit;
  }

  /** Steps over `sizeBytes` and returns where they begin. */
  take(sizeBytes: number): number {
    const start = this.position;
    // Written so that a negative size or NaN fails as well.
    if (!(sizeBytes >= 0 && start + sizeBytes <= this.limit)) {
      throw new CodedError(
        'CHANNEL_FRAME_CORRUPT',
        `a field of ${sizeBytes} bytes at ${start} does not fit a frame that ends at ${this.limit}`,
      );
    }
    this.position = start + sizeBytes;
    return start;
  }

  u8(): number {
    return this.view.getUint8(this.take(1));
  }

  i32(): number {
    return this.view.getInt32(this.take(4), true);
  }

  u32(): number {
    return this.view.getUint32(this.take(4), true);
  }

  f64(): number {
    return this.view.getFloat64(this.take(8), true);
  }

  /** A copy of the next `sizeBytes`, safe to keep. */
  copy(sizeBytes: number): Buffer {
    const start = this.take(sizeBytes);
    const copy = Buffer.allocUnsafeSlow(sizeBytes);
    this.bytes.copy(copy, 0, start, start + sizeBytes);
    return copy;
  }
}
