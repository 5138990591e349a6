// Reads what write.ts wrote. The bytes are input from another process, maybe in memory that it can still
// change: every tag, length, count and depth is checked, and each is read once. A wrong one ends in
// CHANNEL_FRAME_CORRUPT, never in a crash or in memory taken for a forged count.
// Not here: the format (tags.ts), objects that come often (shapes.ts).

import { CodedError } from '../../errors.js';
import { memoryLimit } from '../../lib/index.js';
import type { ByteReader } from '../bytes.js';
import type { BlockStore } from '../types.js';
import { defineField, readKeys, ShapeTable } from './shapes.js';
import { readLatin, readWide } from './strings.js';
import {
  MAX_DEPTH,
  TAG_ARRAY,
  TAG_BIGINT,
  TAG_BIGINT64,
  TAG_BLOCK,
  TAG_BYTES,
  TAG_FALSE,
  TAG_FLOAT64,
  TAG_INT32,
  TAG_NULL,
  TAG_OBJECT,
  TAG_OBJECT_BARE,
  TAG_SLOW,
  TAG_STRING_LATIN,
  TAG_STRING_SHORT,
  TAG_STRING_WIDE,
  TAG_TRUE,
  TAG_UNDEFINED,
} from './tags.js';
import { makeView, VIEW_BUFFER } from './views.js';

/** Keys of up to so many bytes use the shape table; larger objects are used as dictionaries. */
const maxShapeBytes = 1024;
/** Smaller buffers may share a pool, as `Buffer.from` does, in bytes. */
const pooledBytes = 1024;
/** V8's limit is 2^30 bits; the sign counts as well. */
const maxBigIntDigits = 2 ** 28 + 1;
/** Estimates for 64 bits, in bytes. */
const objectBytes = 64;
const bareBytes = 220;
const viewBytes = 220;
const elementBytes = 8;
const bigIntDigits = /^-?[0-9a-f]+$/;

const shapes = new ShapeTable();

function corrupt(what: string): CodedError {
  return new CodedError('CHANNEL_FRAME_CORRUPT', `${what}: both ends must run the same manycore`);
}

/** One per codec. */
export class ValueReader {
  readonly #isTrusted: boolean;
  /** Memory that the rest of a value may take, from a peer that is not trusted. */
  #freeBytes: number;
  readonly #blocks: BlockStore | undefined;
  readonly #decodeSlow: (bytes: Uint8Array) => unknown;
  readonly #readValue: (reader: ByteReader, depth: number) => unknown;

  /** `isTrusted` as of `CodecOptions`. */
  constructor(
    blocks: BlockStore | undefined,
    decodeSlow: (bytes: Uint8Array) => unknown,
    isTrusted: boolean,
  ) {
    this.#isTrusted = isTrusted;
    this.#freeBytes = 0;
    this.#blocks = blocks;
    this.#decodeSlow = decodeSlow;
    this.#readValue = (reader, depth) => this.read(reader, depth);
  }

  /** Reads a value that is in none. Throws as `read`. */
  readWhole(reader: ByteReader): unknown {
    if (!this.#isTrusted) this.#freeBytes = memoryLimit(reader.limit - reader.position);
    return this.read(reader, 0);
  }

  #take(sizeBytes: number): void {
    this.#freeBytes -= sizeBytes;
    if (this.#freeBytes < 0) throw corrupt('a value has too many parts for its size');
  }

  /** Reads the next value. Throws CHANNEL_FRAME_CORRUPT, or what the slow codec throws. */
  read(reader: ByteReader, depth: number): unknown {
    const tag = reader.u8();
    switch (tag) {
      case TAG_INT32:
        return reader.i32();
      case TAG_STRING_SHORT:
        return readLatin(reader, reader.u8());
      case TAG_OBJECT:
        return this.#readObject(reader, depth + 1);
      case TAG_ARRAY:
        return this.#readArray(reader, depth + 1);
      case TAG_FLOAT64:
        return reader.f64();
      case TAG_UNDEFINED:
        return undefined;
      case TAG_NULL:
        return null;
      case TAG_FALSE:
        return false;
      case TAG_TRUE:
        return true;
      case TAG_STRING_LATIN:
        return readLatin(reader, reader.u32());
      case TAG_STRING_WIDE:
        return readWide(reader, reader.u32());
      case TAG_BIGINT64:
        return reader.view.getBigInt64(reader.take(8), true);
      case TAG_BIGINT:
        return readBigInt(reader);
      case TAG_OBJECT_BARE:
        return this.#readBareObject(reader, depth + 1);
      case TAG_BYTES:
        if (!this.#isTrusted) this.#take(viewBytes);
        return readBytes(reader);
      case TAG_BLOCK:
        return this.#readReference(reader);
      case TAG_SLOW:
        // Each has a limit of its own, and none is written inside of another value.
        if (!this.#isTrusted && depth > 0) throw corrupt('a value inside of another is of no kind');
        return this.#decodeSlow(reader.copy(reader.u32()));
      default:
        throw corrupt(`no value begins with tag ${tag}`);
    }
  }

  #readArray(reader: ByteReader, depth: number): unknown[] {
    checkDepth(depth);
    const count = reader.u32();
    // Each value has at least one byte.
    if (count > reader.limit - reader.position) throw corrupt(`${count} items in too few bytes`);
    if (!this.#isTrusted) this.#take(objectBytes + count * elementBytes);
    const items: unknown[] = [];
    for (let index = 0; index < count; index += 1) items.push(this.read(reader, depth));
    return items;
  }

  #readObject(reader: ByteReader, depth: number): Record<string, unknown> {
    checkDepth(depth);
    if (!this.#isTrusted) this.#take(objectBytes);
    const keyBytes = reader.u32();
    if (keyBytes <= maxShapeBytes) {
      return shapes.find(reader, keyBytes).read(this.#readValue, reader, depth);
    }
    const object: Record<string, unknown> = {};
    for (const key of splitKeys(reader, keyBytes)) {
      // Inherited: `__proto__`, and properties that a program has added to Object.prototype.
      if (key in object) defineField(object, key, this.read(reader, depth));
      else object[key] = this.read(reader, depth);
    }
    return object;
  }

  #readBareObject(reader: ByteReader, depth: number): Record<string, unknown> {
    checkDepth(depth);
    if (!this.#isTrusted) this.#take(bareBytes);
    const object: Record<string, unknown> = Object.create(null);
    for (const key of splitKeys(reader, reader.u32())) object[key] = this.read(reader, depth);
    return object;
  }

  #readReference(reader: ByteReader): ArrayBufferView | ArrayBuffer {
    const kind = reader.u8();
    const isShared = reader.u8() === 1;
    const owner = reader.i32();
    const offset = readSize(reader);
    const sizeBytes = readSize(reader);
    const viewOffset = readSize(reader);
    const viewBytes = readSize(reader);
    if (this.#blocks === undefined) throw corrupt('a block, but this channel shares no memory');
    const memory = this.#blocks.borrow({ owner, offset, sizeBytes }, isShared);
    return makeView(kind, memory, viewOffset, viewBytes);
  }
}

function checkDepth(depth: number): void {
  if (depth > MAX_DEPTH) throw corrupt(`values are nested deeper than ${MAX_DEPTH}`);
}

/** Reads a whole number of bytes that was sent as f64. */
function readSize(reader: ByteReader): number {
  const size = reader.f64();
  if (!Number.isSafeInteger(size) || size < 0) throw corrupt(`${size} is no size`);
  return size;
}

function splitKeys(reader: ByteReader, keyBytes: number): string[] {
  const start = reader.take(keyBytes);
  const limit = reader.limit;
  reader.reset(start, start + keyBytes);
  try {
    return readKeys(reader);
  } finally {
    reader.limit = limit;
  }
}

function readBigInt(reader: ByteReader): bigint {
  const count = reader.u32();
  if (count > maxBigIntDigits) throw corrupt(`no bigint has ${count} digits`);
  const digits = readLatin(reader, count);
  if (!bigIntDigits.test(digits)) throw corrupt('a bigint has characters that are no digits');
  return digits.startsWith('-') ? -BigInt(`0x${digits.slice(1)}`) : BigInt(`0x${digits}`);
}

function readBytes(reader: ByteReader): ArrayBufferView | ArrayBuffer {
  const kind = reader.u8();
  const sizeBytes = reader.u32();
  const start = reader.take(sizeBytes);
  if (kind === VIEW_BUFFER && sizeBytes <= pooledBytes) {
    const pooled = Buffer.allocUnsafe(sizeBytes);
    reader.bytes.copy(pooled, 0, start, start + sizeBytes);
    return pooled;
  }
  // Views of any other kind have an ArrayBuffer that is theirs alone.
  if (kind === VIEW_BUFFER && reader.isOwn && sizeBytes > reader.bytes.byteLength / 2) {
    return reader.bytes.subarray(start, start + sizeBytes);
  }
  const own = new ArrayBuffer(sizeBytes);
  new Uint8Array(own).set(reader.bytes.subarray(start, start + sizeBytes));
  return makeView(kind, own, 0, sizeBytes);
}
