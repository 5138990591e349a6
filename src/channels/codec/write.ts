// Writes plain data: primitives, strings, byte views, arrays without holes, plain objects, nested. "Plain"
// means nothing but enumerable data (lib/input/plain.ts). The writer returns false for the rest, which goes by
// the slow codec: functions, class instances, accessors, frozen objects, the same object twice (its identity
// must survive), cycles, holes, names on arrays. No code of the user's runs.
//
// A frame stands for itself: no table of shapes or strings is shared with the peer, so that a frame may be
// dropped, or written again for another worker. Shaped for speed (bench/cases/throughput): no allocation for
// plain data; objects seen are remembered in a short list before a Set.
// Not here: the format (tags.ts), reading it (read.ts).

import { isArrayBuffer, isProxy } from 'node:util/types';
import {
  isBare,
  isPlainArray,
  isPlainRecord,
  isSameClass,
  isUsualArray,
  modelOf,
} from '../../lib/index.js';
import type { ByteWriter } from '../bytes.js';
import type { Block, BlockStore } from '../types.js';
import { Pieces } from './pieces.js';
import { writeKey, writeString } from './strings.js';
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
  TAG_TRUE,
  TAG_UNDEFINED,
} from './tags.js';
import { VIEW_ARRAY_BUFFER, VIEW_BUFFER, viewKindOf } from './views.js';

const objectPrototype: object = Object.prototype;
/** Objects compared one by one; more go into a Set. */
const seenListSize = 16;
/** Larger sizes do not fit the u32 of a field with its neighbours. */
const maxInlineBytes = 0x7fff_ffff;

function isRecord(_value: object): _value is Record<string, unknown> {
  return true;
}

/** Returns true when `Object.prototype` has an enumerable property, which `for in` would list everywhere. */
function isPrototypePolluted(): boolean {
  for (const _key in objectPrototype) return true;
  return false;
}

/** One per codec. */
export class ValueWriter {
  /** Blocks that the value just written refers to, each held once for the caller. */
  readonly placed: Block[] = [];
  readonly #blocks: BlockStore | undefined;
  readonly #thresholdBytes: number;
  readonly #seen: (object | undefined)[];
  #seenCount: number;
  #moreSeen: Set<object> | undefined;
  readonly #pieces: Pieces;
  #isPolluted: boolean;
  /** By depth: an object like the last one that was written there. */
  readonly #models: (object | undefined)[];

  /** Copies below `thresholdBytes` are written inline; shared memory always goes as its block. */
  constructor(blocks: BlockStore | undefined, thresholdBytes = blocks?.thresholdBytes ?? Infinity) {
    this.#blocks = blocks;
    this.#thresholdBytes = thresholdBytes;
    this.#seen = new Array<object | undefined>(seenListSize).fill(undefined);
    this.#seenCount = 0;
    this.#moreSeen = undefined;
    this.#pieces = new Pieces();
    this.#isPolluted = false;
    this.#models = new Array<object | undefined>(MAX_DEPTH).fill(undefined);
  }

  /**
   * Writes `value`, or returns false with the writer as it was. After true, check `writer.overflowed`: then
   * nothing of use was written and nothing is `placed`.
   */
  tryWrite(writer: ByteWriter, value: unknown): boolean {
    this.#isPolluted = isPrototypePolluted();
    const start = writer.position;
    const hadOverflowed = writer.overflowed;
    if (this.placed.length > 0) this.placed.length = 0;
    let isWritten = false;
    try {
      isWritten = this.#write(writer, value, 0);
    } finally {
      this.#forget();
      if (!isWritten) {
        writer.position = start;
        writer.overflowed = hadOverflowed;
      }
      if (!isWritten || writer.overflowed) this.releasePlaced();
    }
    return isWritten;
  }

  /** Gives up the hold on each placed block. */
  releasePlaced(): void {
    for (const block of this.placed) this.#blocks?.release(block);
    this.placed.length = 0;
  }

  #forget(): void {
    const used = Math.min(this.#seenCount, seenListSize);
    for (let index = 0; index < used; index += 1) this.#seen[index] = undefined;
    this.#seenCount = 0;
    this.#moreSeen = undefined;
    this.#pieces.clear();
  }

  #isRepeated(value: object): boolean {
    const seen = this.#seen;
    const count = this.#seenCount;
    const listed = count < seenListSize ? count : seenListSize;
    for (let index = 0; index < listed; index += 1) if (seen[index] === value) return true;
    if (count < seenListSize) {
      seen[count] = value;
    } else {
      this.#moreSeen ??= new Set();
      if (this.#moreSeen.has(value)) return true;
      this.#moreSeen.add(value);
    }
    this.#seenCount = count + 1;
    return false;
  }

  #write(writer: ByteWriter, value: unknown, depth: number): boolean {
    switch (typeof value) {
      case 'number':
        writeNumber(writer, value);
        return true;
      case 'string':
        writeString(writer, value);
        return true;
      case 'boolean':
        writer.u8(value ? TAG_TRUE : TAG_FALSE);
        return true;
      case 'undefined':
        writer.u8(TAG_UNDEFINED);
        return true;
      case 'object':
        if (value !== null) return this.#writeObject(writer, value, depth);
        writer.u8(TAG_NULL);
        return true;
      case 'bigint':
        writeBigInt(writer, value);
        return true;
      default:
        return false;
    }
  }

  #writeObject(writer: ByteWriter, value: object, depth: number): boolean {
    if (writer.overflowed) return true;
    if (depth >= MAX_DEPTH || this.#isRepeated(value)) return false;
    if (isUsualArray(value)) return this.#writeArray(writer, value, depth);
    const model = this.#models[depth];
    if (model !== undefined && isSameClass(model, value) && isRecord(value)) {
      return this.#writeRecord(writer, value, TAG_OBJECT, depth, true);
    }
    if (isProxy(value)) return false; // asked before one of its traps is called
    if (Array.isArray(value)) return isPlainArray(value) && this.#writeArray(writer, value, depth);
    const prototype: unknown = Object.getPrototypeOf(value);
    if (prototype === objectPrototype || prototype === null) {
      const tag = prototype === null ? TAG_OBJECT_BARE : TAG_OBJECT;
      return isRecord(value) && this.#writeRecord(writer, value, tag, depth, false);
    }
    return typeof prototype === 'object' && this.#writeView(writer, value, prototype);
  }

  #writeArray(writer: ByteWriter, value: readonly unknown[], depth: number): boolean {
    const count = value.length;
    if (!writer.hasRoom(5)) return true;
    writer.bytes[writer.position] = TAG_ARRAY;
    writer.view.setUint32(writer.position + 1, count, true);
    writer.position += 5;
    for (let index = 0; index < count; index += 1) {
      const item = value[index];
      if (item === undefined && !Object.hasOwn(value, index)) return false;
      if (!this.#write(writer, item, depth + 1)) return false;
      if (writer.overflowed) return true;
    }
    return true;
  }

  #writeRecord(
    writer: ByteWriter,
    value: Record<string, unknown>,
    tag: number,
    depth: number,
    isPlain: boolean,
  ): boolean {
    if (this.#isPolluted) return false;
    if (!writer.hasRoom(9)) return true;
    const start = writer.position;
    writer.bytes[start] = tag;
    writer.position = start + 9;
    let keyCount = 0;
    for (const key in value) {
      writeKey(writer, key);
      keyCount += 1;
    }
    if (writer.overflowed) return true;
    writer.view.setUint32(start + 1, writer.position - (start + 5), true);
    writer.view.setUint32(start + 5, keyCount, true);
    if (!isPlain) {
      const model = modelOf(value, keyCount + writer.position - start);
      if (model !== undefined) this.#models[depth] = model;
      else if (!isPlainRecord(value)) return false;
    }
    for (const key in value) if (!this.#write(writer, value[key], depth + 1)) return false;
    return true;
  }

  #writeView(writer: ByteWriter, value: object, prototype: object): boolean {
    const kind = viewKindOf(prototype);
    if (kind === undefined) return false;
    if (kind === VIEW_ARRAY_BUFFER) {
      if (!isArrayBuffer(value) || !isBare(value) || !this.#pieces.tryAdd(value, value, false))
        return false;
      return this.#writeBytes(writer, kind, new Uint8Array(value));
    }
    if (!ArrayBuffer.isView(value) || !isBare(value)) return false;
    if (!this.#pieces.tryAdd(value.buffer, value, kind === VIEW_BUFFER)) return false;
    if (value instanceof Uint8Array) return this.#writeBytes(writer, kind, value);
    const bytes = new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
    return this.#writeBytes(writer, kind, bytes);
  }

  #writeBytes(writer: ByteWriter, kind: number, bytes: Uint8Array): boolean {
    const { buffer, byteLength: sizeBytes } = bytes;
    const blocks = this.#blocks;
    if (blocks !== undefined) {
      const isShared = blocks.sharedBlock(buffer) !== undefined;
      const isLarge = sizeBytes >= this.#thresholdBytes && isPlainMemory(buffer);
      if (isShared || isLarge) {
        const block = blocks.place(bytes);
        if (block !== undefined) {
          this.placed.push(block);
          writeReference(writer, kind, block, isShared ? bytes.byteOffset : 0, sizeBytes, isShared);
          return true;
        }
      }
    }
    if (!isPlainMemory(buffer)) return false;
    if (sizeBytes > maxInlineBytes) return false;
    if (!writer.hasRoom(6 + sizeBytes)) return true;
    writer.bytes[writer.position] = TAG_BYTES;
    writer.bytes[writer.position + 1] = kind;
    writer.view.setUint32(writer.position + 2, sizeBytes, true);
    writer.bytes.set(bytes, writer.position + 6);
    writer.position += 6 + sizeBytes;
    return true;
  }
}

function writeNumber(writer: ByteWriter, value: number): void {
  if (!writer.hasRoom(9)) return;
  const position = writer.position;
  if ((value | 0) === value && (value !== 0 || 1 / value > 0)) {
    writer.bytes[position] = TAG_INT32;
    writer.view.setInt32(position + 1, value, true);
    writer.position = position + 5;
  } else {
    writer.bytes[position] = TAG_FLOAT64;
    writer.view.setFloat64(position + 1, value, true);
    writer.position = position + 9;
  }
}

function writeBigInt(writer: ByteWriter, value: bigint): void {
  if (BigInt.asIntN(64, value) === value) {
    if (!writer.hasRoom(9)) return;
    writer.bytes[writer.position] = TAG_BIGINT64;
    writer.view.setBigInt64(writer.position + 1, value, true);
    writer.position += 9;
    return;
  }
  const digits = value.toString(16);
  if (!writer.hasRoom(5 + digits.length)) return;
  writer.bytes[writer.position] = TAG_BIGINT;
  writer.view.setUint32(writer.position + 1, digits.length, true);
  writer.bytes.write(digits, writer.position + 5, 'latin1');
  writer.position += 5 + digits.length;
}

function writeReference(
  writer: ByteWriter,
  kind: number,
  block: Block,
  viewOffset: number,
  viewBytes: number,
  isShared: boolean,
): void {
  writer.u8(TAG_BLOCK);
  writer.u8(kind);
  writer.u8(isShared ? 1 : 0);
  writer.i32(block.owner);
  writer.f64(block.offset);
  writer.f64(block.sizeBytes);
  writer.f64(viewOffset);
  writer.f64(viewBytes);
}

/** False for memory of several threads, or of changing size: there is more to it than its bytes. */
function isPlainMemory(buffer: ArrayBufferLike): boolean {
  return buffer instanceof ArrayBuffer && !('resizable' in buffer && buffer.resizable === true);
}
