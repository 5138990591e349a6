// Leaves of sorted maps: entries in the order of their keys, in a block of words that never changes once others can
// see it. A change makes another block.
//
//   count, next leaf (index, header), bytes in use, high key (2) | keys (2 each) | values (3 each) | bytes
//
// A key is a float64, or a text in the bytes: a NaN with its place. A value is as in a TVar, but its bytes are in the
// leaf. Words may be those of a faulty process: what is read from them is compared with limits.
// Not here: which leaf has a key (leaf-map.ts), values (write-value.ts, read-value.ts).

import { CodedError } from '../../errors.js';
import { KIND_BYTES } from '../kinds.js';
import { damaged, type ValueReader } from '../read-value.js';
import type { Space } from '../space.js';
import type { TVarName, Words } from '../write-value.js';

/** Numbers come before texts; texts are ordered by their UTF-16 code units, as `<` orders them. */
export type Key = number | string;

/** Entries of a leaf. */
export const MAX_ENTRIES = 32;
/** Bytes of a value in a leaf; larger ones are in a TVar of their own. */
export const MAX_INLINE_BYTES = 64;
/** UTF-16 code units of a key. */
export const MAX_KEY_UNITS = 512;

const COUNT = 0;
const NEXT_AT = 1;
const NEXT_HEADER = 2;
const BYTES_IN_USE = 3;
const HIGH = 4;
const HEAD_WORDS = 6;
const KEY_WORDS = 2;
const VALUE_WORDS = 3;
const ENTRY_WORDS = KEY_WORDS + VALUE_WORDS;
/** Upper halves of the NaNs that stand for texts. No number has them: keys are never NaN. */
const LATIN_KEY = 0x7ff8_0001;
const WIDE_KEY = 0x7ff8_0002;

const wideCharacter = /[^\0-\xff]/;

/** A range of the entries of a leaf: from the first one up to the second one. */
type Range = readonly [from: number, to: number];
const nothing: Range = [0, 0];

export interface Entry {
  readonly key: Key;
  readonly value: Words;
}

/** A new leaf: entries of an old one, with one more between two ranges of them. */
export interface Plan {
  readonly of: number;
  readonly before: Range;
  readonly entry?: Entry | undefined;
  readonly after?: Range;
  readonly next: TVarName | undefined;
  /** The key from which on the next leaf has the entries; `undefined`: there is none. */
  readonly high: Key | undefined;
}

/** A key that the map can have, which -0 is not. Throws `STM_VALUE`, `STM_VALUE_TOO_LARGE`. */
export function checkKey(key: unknown): Key {
  if (typeof key === 'number' && !Number.isNaN(key)) return key + 0;
  if (typeof key !== 'string') {
    throw new CodedError('STM_VALUE', 'a key of a map is a number other than NaN, or a string');
  }
  if (key.length > MAX_KEY_UNITS) {
    throw new CodedError(
      'STM_VALUE_TOO_LARGE',
      `a key of a map has more than ${MAX_KEY_UNITS} characters: use a hash of it`,
    );
  }
  return key;
}

/** True: `left` is before `right`. */
export function isBefore(left: Key, right: Key): boolean {
  if (typeof left === typeof right) return left < right;
  return typeof left === 'number';
}

/** The leaves in the memory of this thread; `base`: the first word of one. */
export class Leaves {
  readonly #space: Space;
  readonly #words: Int32Array;
  readonly #floats: Float64Array;
  readonly #bytes: Buffer;

  constructor(space: Space) {
    this.#space = space;
    this.#words = space.words;
    this.#floats = new Float64Array(space.words.buffer);
    this.#bytes = space.bytes;
  }

  /** Number of entries. Throws `SEGMENT_CORRUPT` where no leaf can be. */
  count(base: number): number {
    const count = this.#words[base + COUNT] ?? 0;
    const isInside = base >= this.#space.at.heap && base + HEAD_WORDS <= this.#space.at.sizeWords;
    if (!isInside || (base & 1) === 1 || count < 0 || count > MAX_ENTRIES) {
      throw damaged('a leaf');
    }
    return count;
  }

  /** The leaf behind it; `undefined`: it is the last one. */
  next(base: number): TVarName | undefined {
    const at = this.#words[base + NEXT_AT] ?? 0;
    return at === 0 ? undefined : { at, header: this.#words[base + NEXT_HEADER] ?? 0 };
  }

  /** True: `key` is in a leaf behind this one. */
  isBeyond(base: number, key: Key): boolean {
    if (this.#words[base + NEXT_AT] === 0) return false;
    return !isBefore(key, this.high(base));
  }

  /** The key from which on the next leaf has the entries. */
  high(base: number): Key {
    return this.#key(base, base + HIGH);
  }

  key(base: number, index: number): Key {
    return this.#key(base, base + HEAD_WORDS + KEY_WORDS * index);
  }

  #key(base: number, at: number): Key {
    const number = this.#floats[at >> 1] ?? 0;
    return Number.isNaN(number) ? this.#text(base, at) : number;
  }

  #text(base: number, at: number): string {
    const start = this.#bytesAt(base) + (this.#words[at] ?? 0);
    const sizeBytes = this.#words[start >>> 2] ?? 0;
    if (sizeBytes < 0 || sizeBytes > 2 * MAX_KEY_UNITS || (start & 3) !== 0) throw damaged('a key');
    const isWide = this.#words[at + 1] === WIDE_KEY;
    const from = start + 4;
    return this.#bytes.toString(isWide ? 'utf16le' : 'latin1', from, from + sizeBytes);
  }

  /** Offset of the bytes in the memory. */
  #bytesAt(base: number): number {
    return 4 * (base + HEAD_WORDS + ENTRY_WORDS * (this.#words[base + COUNT] ?? 0));
  }

  /** The first entry whose key is not before `key`; the number of entries, if there is none. */
  find(base: number, key: Key): number {
    let low = 0;
    let high = this.count(base);
    const first = (base + HEAD_WORDS) >> 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      const found = this.#floats[first + middle] ?? 0;
      if (typeof key === 'number') {
        if (found < key) low = middle + 1;
        else high = middle; // a text, too: it is no number below any
      } else if (!Number.isNaN(found) || this.key(base, middle) < key) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** True: the entry at `index` has this key. */
  has(base: number, index: number, key: Key): boolean {
    return index < this.count(base) && this.key(base, index) === key;
  }

  kind(base: number, index: number): number {
    return this.#words[this.#valueAt(base, index)] ?? 0;
  }

  /** The name of a TVar that is the value at `index`. */
  name(base: number, index: number): TVarName {
    const at = this.#valueAt(base, index);
    return { at: this.#words[at + 1] ?? 0, header: this.#words[at + 2] ?? 0 };
  }

  value(base: number, index: number, reader: ValueReader): unknown {
    const at = this.#valueAt(base, index);
    const kind = this.#words[at] ?? 0;
    const lo = this.#words[at + 1] ?? 0;
    const hi = this.#words[at + 2] ?? 0;
    if (kind !== KIND_BYTES) return reader.read(kind, lo, hi);
    return reader.read(kind, (this.#bytesAt(base) + lo) >>> 2, hi);
  }

  #valueAt(base: number, index: number): number {
    return base + HEAD_WORDS + KEY_WORDS * this.count(base) + VALUE_WORDS * index;
  }

  /** Words of the leaf of a plan, and bytes of its texts and values. */
  size({ of, before, entry, after = nothing, high }: Plan): { words: number; bytes: number } {
    const count = before[1] - before[0] + (entry === undefined ? 0 : 1) + after[1] - after[0];
    let bytes = textBytes(high) + textBytes(entry?.key) + padded(entry?.value.bytes?.length ?? 0);
    if (this.#words[of + BYTES_IN_USE] !== 0) {
      for (const [from, to] of [before, after]) {
        for (let index = from; index < to; index += 1) bytes += this.#entryBytes(of, index);
      }
    }
    return { words: HEAD_WORDS + ENTRY_WORDS * count + (bytes >> 2), bytes };
  }

  #entryBytes(base: number, index: number): number {
    const key = base + HEAD_WORDS + KEY_WORDS * index;
    const isText = Number.isNaN(this.#floats[key >> 1] ?? 0);
    const start = this.#bytesAt(base) + (this.#words[key] ?? 0);
    const textSize = isText ? (this.#words[start >>> 2] ?? 0) : 0;
    const value = this.#valueAt(base, index);
    const size = this.#words[value] === KIND_BYTES ? (this.#words[value + 2] ?? 0) : 0;
    if (textSize < 0 || textSize > 2 * MAX_KEY_UNITS || size < 0 || size > MAX_INLINE_BYTES) {
      throw damaged('the size of an entry');
    }
    return (isText ? 4 + padded(textSize) : 0) + padded(size);
  }

  /** Writes the leaf of a plan into the block at `base`, which nobody else sees yet. */
  write(base: number, plan: Plan, bytes: number): void {
    const { of, before, entry, after = nothing, next, high } = plan;
    const first = before[1] - before[0];
    const second = first + (entry === undefined ? 0 : 1);
    const count = second + after[1] - after[0];
    const words = this.#words;
    words[base + COUNT] = count;
    words[base + NEXT_AT] = next?.at ?? 0;
    words[base + NEXT_HEADER] = next?.header ?? 0;
    words[base + BYTES_IN_USE] = bytes;
    this.#end = 0;
    this.#writeKey(base, base + HIGH, high ?? 0);
    const copy = bytes === 0 ? this.#copyWords : this.#copyEntries;
    copy.call(this, base, 0, of, before);
    copy.call(this, base, second, of, after);
    if (entry !== undefined) this.#writeEntry(base, first, entry);
  }

  /** End of the bytes that were written into the present leaf. */
  #end = 0;

  #writeEntry(base: number, index: number, { key, value }: Entry): void {
    this.#writeKey(base, base + HEAD_WORDS + KEY_WORDS * index, key);
    const at = this.#valueAt(base, index);
    this.#words[at] = value.kind;
    this.#words[at + 1] = value.bytes === undefined ? value.lo : this.#end;
    this.#words[at + 2] = value.hi;
    if (value.bytes === undefined) return;
    this.#bytes.set(value.bytes, this.#bytesAt(base) + this.#end);
    this.#end += padded(value.bytes.length);
  }

  #writeKey(base: number, at: number, key: Key): void {
    if (typeof key === 'number') {
      this.#floats[at >> 1] = key;
      return;
    }
    const isWide = wideCharacter.test(key);
    this.#words[at] = this.#end;
    this.#words[at + 1] = isWide ? WIDE_KEY : LATIN_KEY;
    const start = this.#bytesAt(base) + this.#end;
    this.#words[start >>> 2] = isWide ? 2 * key.length : key.length;
    this.#bytes.write(key, start + 4, isWide ? 'utf16le' : 'latin1');
    this.#end += textBytes(key);
  }

  /** Copies entries that have no bytes. */
  #copyWords(base: number, index: number, of: number, [from, to]: Range): void {
    if (from === to) return;
    const keys = of + HEAD_WORDS;
    const toKeys = base + HEAD_WORDS + KEY_WORDS * index;
    this.#words.copyWithin(toKeys, keys + KEY_WORDS * from, keys + KEY_WORDS * to);
    this.#words.copyWithin(
      this.#valueAt(base, index),
      this.#valueAt(of, from),
      this.#valueAt(of, to),
    );
  }

  #copyEntries(base: number, index: number, of: number, range: Range): void {
    this.#copyWords(base, index, of, range);
    const [from, to] = range;
    for (let each = from; each < to; each += 1) {
      const at = index + each - from;
      const key = this.key(of, each);
      if (typeof key === 'string') {
        this.#writeKey(base, base + HEAD_WORDS + KEY_WORDS * at, key);
      }
      const [source, target] = [this.#valueAt(of, each), this.#valueAt(base, at)];
      if (this.#words[source] !== KIND_BYTES) continue;
      const start = this.#bytesAt(of) + (this.#words[source + 1] ?? 0);
      const size = this.#words[source + 2] ?? 0;
      this.#bytes.copyWithin(this.#bytesAt(base) + this.#end, start, start + size);
      this.#words[target + 1] = this.#end;
      this.#end += padded(size);
    }
  }
}

function padded(sizeBytes: number): number {
  return (sizeBytes + 3) & ~3;
}

/** Bytes of a key in the bytes of its leaf: its size, then its characters. */
function textBytes(key: Key | undefined): number {
  if (typeof key !== 'string') return 0;
  return 4 + padded(wideCharacter.test(key) ? 2 * key.length : key.length);
}
