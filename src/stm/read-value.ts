// Makes a value of the three words of a TVar, deeply frozen, so that all code of a thread may have the same
// object. The words and bytes may be those of a faulty process: each tag, count and depth is checked.
// Not here: the formats (kinds.ts), writing them (write-value.ts).

import { CodedError } from '../errors.js';
import { defineOwn } from '../lib/index.js';
import {
  KIND_BIGINT64,
  KIND_BYTES,
  KIND_FALSE,
  KIND_FLOAT64,
  KIND_INT32,
  KIND_NULL,
  KIND_SORTED_MAP,
  KIND_TRUE,
  KIND_TVAR,
  KIND_UNDEFINED,
  MAX_DEPTH,
  MAX_VALUE_BYTES,
  TAG_ARRAY,
  TAG_BARE,
  TAG_BIGINT,
  TAG_LATIN,
  TAG_OBJECT,
  TAG_UINT8_ARRAY,
  TAG_WIDE,
} from './kinds.js';

const float = new Float64Array(1);
const big = new BigInt64Array(float.buffer);
const halves = new Int32Array(float.buffer);

/** @internal The error for words that no process of this version writes. */
export function damaged(what: string): CodedError {
  return new CodedError(
    'SEGMENT_CORRUPT',
    `${what} of a TVar is damaged: another process wrote where it must not`,
  );
}

/** True: a TVar, or a collection. */
function isShared(kind: number): boolean {
  return kind === KIND_TVAR || kind >= KIND_SORTED_MAP;
}

/** One value at a time. */
export class ValueReader {
  readonly #space: Buffer;
  /** The memory of the present value. */
  #memory: Buffer;
  readonly #heapBytes: number;
  readonly #sharedOf: (kind: number, at: number, header: number) => unknown;
  #at = 0;
  #end = 0;
  /** True: the last value has parts that cannot be frozen. */
  isOpen = false;

  /** `heapBytes`: where objects begin in `memory`, the space. `sharedOf`: a TVar or collection by its name. */
  constructor(
    memory: Buffer,
    heapBytes: number,
    sharedOf: (kind: number, at: number, header: number) => unknown,
  ) {
    this.#space = memory;
    this.#memory = memory;
    this.#heapBytes = heapBytes;
    this.#sharedOf = sharedOf;
  }

  /** Reads bytes that ValueWriter has just written. */
  copy(bytes: Uint8Array): unknown {
    this.isOpen = false;
    this.#memory = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    this.#at = 0;
    this.#end = bytes.length;
    return this.#value(0);
  }

  /** Throws `SEGMENT_CORRUPT`. */
  read(kind: number, lo: number, hi: number): unknown {
    this.isOpen = false;
    switch (kind) {
      case KIND_INT32:
        return lo;
      case KIND_FLOAT64:
        halves[0] = lo;
        halves[1] = hi;
        return float[0];
      case KIND_BIGINT64:
        halves[0] = lo;
        halves[1] = hi;
        return big[0];
      case KIND_BYTES:
        return this.#readBytes(lo * 4, hi);
      default:
        return isShared(kind) ? this.#sharedOf(kind, lo, hi) : this.#simple(kind);
    }
  }

  #simple(kind: number): unknown {
    switch (kind) {
      case KIND_UNDEFINED:
        return undefined;
      case KIND_NULL:
        return null;
      case KIND_FALSE:
        return false;
      case KIND_TRUE:
        return true;
      default:
        throw damaged('the kind');
    }
  }

  #readBytes(start: number, sizeBytes: number): unknown {
    const isInside =
      start >= this.#heapBytes &&
      sizeBytes > 0 &&
      sizeBytes <= MAX_VALUE_BYTES &&
      start + sizeBytes <= this.#space.length;
    if (!isInside) throw damaged('the place of a value');
    this.#memory = this.#space;
    this.#at = start;
    this.#end = start + sizeBytes;
    return this.#value(0);
  }

  #take(sizeBytes: number): number {
    const start = this.#at;
    this.#at += sizeBytes;
    if (this.#at > this.#end) throw damaged('the size of a value');
    return start;
  }

  #count(): number {
    return this.#memory.readUInt32LE(this.#take(4));
  }

  #value(depth: number): unknown {
    if (depth > MAX_DEPTH) throw damaged('the depth of a value');
    const tag = this.#memory[this.#take(1)] ?? 0;
    switch (tag) {
      case KIND_FLOAT64:
        return this.#memory.readDoubleLE(this.#take(8));
      case TAG_LATIN:
      case TAG_WIDE:
        return this.#text(tag);
      case TAG_BIGINT:
        return this.#bigint();
      case TAG_ARRAY:
        return this.#array(depth);
      case TAG_OBJECT:
        return this.#fields({}, depth);
      case TAG_BARE:
        return this.#fields(Object.create(null), depth);
      case TAG_UINT8_ARRAY:
        return this.#uint8Array();
      default:
        return isShared(tag) ? this.#shared(tag) : this.#simple(tag);
    }
  }

  #shared(kind: number): unknown {
    const start = this.#take(8);
    const at = this.#memory.readInt32LE(start);
    return this.#sharedOf(kind, at, this.#memory.readInt32LE(start + 4));
  }

  #text(tag: number): string {
    const sizeBytes = this.#count();
    const start = this.#take(sizeBytes);
    const encoding = tag === TAG_LATIN ? 'latin1' : 'utf16le';
    return this.#memory.toString(encoding, start, start + sizeBytes);
  }

  #bigint(): bigint {
    const digits = this.#text(TAG_LATIN);
    const isNegative = digits.startsWith('-');
    const hexadecimal = isNegative ? digits.slice(1) : digits;
    if (!/^[0-9a-f]+$/.test(hexadecimal)) throw damaged('a bigint');
    const value = BigInt(`0x${hexadecimal}`);
    return isNegative ? -value : value;
  }

  #array(depth: number): readonly unknown[] {
    const count = this.#count();
    const values: unknown[] = [];
    for (let index = 0; index < count; index += 1) values.push(this.#value(depth + 1));
    return Object.freeze(values);
  }

  #fields(object: Record<string, unknown>, depth: number): object {
    const count = this.#count();
    for (let index = 0; index < count; index += 1) {
      const tag = this.#memory[this.#take(1)] ?? 0;
      if (tag !== TAG_LATIN && tag !== TAG_WIDE) throw damaged('a name');
      const key = this.#text(tag);
      const value = this.#value(depth + 1);
      if (key === '__proto__') defineOwn(object, key, { value, enumerable: true });
      else object[key] = value;
    }
    return Object.freeze(object);
  }

  #uint8Array(): Uint8Array {
    this.isOpen = true;
    const sizeBytes = this.#count();
    const start = this.#take(sizeBytes);
    return new Uint8Array(this.#memory.subarray(start, start + sizeBytes));
  }
}
