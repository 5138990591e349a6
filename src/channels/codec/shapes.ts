// The keys of an object, recognised by the bytes that name them. Reading keys one by one and adding them to
// an object one by one costs more than all the rest of reading it. A shape that was seen before gives the
// object at once, with its fields in place (bench/cases/throughput).
//
// The table is direct-mapped and of a fixed size: a peer that sends ever new shapes replaces entries and
// gains nothing else. Code is made for shapes that come often, where the process allows it; a key gets into
// that code only through JSON.stringify.

import { CodedError } from '../../errors.js';
import { defineOwn, jsonOf } from '../../lib/index.js';
import { ByteReader } from '../bytes.js';
import { readKey } from './strings.js';

const slotBits = 9;
/** Uses after which code is made for a shape. */
const usesBeforeCode = 32;
/** Largest number of functions made in this process: code is never freed. */
const maxMadeFunctions = 1000;

/** Reads one value: `ValueReader.value`. */
export type ReadValue = (reader: ByteReader, depth: number) => unknown;
type MakeObject = (read: ReadValue, reader: ByteReader, depth: number) => Record<string, unknown>;

let madeFunctions = 0;
let mayMakeCode = true;

/** The keys of one kind of object, in order. */
export class Shape {
  readonly keys: readonly string[];
  readonly #keyView: DataView;
  readonly #template: Record<string, unknown>;
  #uses: number;
  #make: MakeObject | undefined;

  constructor(keys: readonly string[], keyView: DataView) {
    this.keys = keys;
    this.#keyView = keyView;
    this.#template = {};
    for (const key of keys) defineField(this.#template, key, undefined);
    this.#uses = 0;
    this.#make = undefined;
  }

  /** True: the keys are written with exactly these bytes. */
  matches(view: DataView, start: number, sizeBytes: number): boolean {
    const own = this.#keyView;
    if (own.byteLength !== sizeBytes) return false;
    let index = 0;
    for (; index + 4 <= sizeBytes; index += 4) {
      if (own.getInt32(index, true) !== view.getInt32(start + index, true)) return false;
    }
    for (; index < sizeBytes; index += 1) {
      if (own.getUint8(index) !== view.getUint8(start + index)) return false;
    }
    return true;
  }

  /** Reads an object of this shape, with a value for each key. */
  read(read: ReadValue, reader: ByteReader, depth: number): Record<string, unknown> {
    if (this.#make !== undefined) return this.#make(read, reader, depth);
    this.#uses += 1;
    if (this.#uses === usesBeforeCode) this.#make = makeCode(this.keys);
    const object = { ...this.#template };
    const keys = this.keys;
    for (let index = 0; index < keys.length; index += 1) {
      const key = keys[index];
      if (key === '__proto__') defineField(object, key, read(reader, depth));
      else if (key !== undefined) object[key] = read(reader, depth);
    }
    return object;
  }
}

/** Sets a field of the object's own, also one called `__proto__`. */
export function defineField(object: object, key: string, value: unknown): void {
  defineOwn(object, key, {
    value,
    writable: true,
    enumerable: true,
    configurable: true,
  });
}

function makeCode(keys: readonly string[]): MakeObject | undefined {
  if (!mayMakeCode || madeFunctions >= maxMadeFunctions) return undefined;
  // Fields in brackets are always the object's own, `__proto__` too; others keep the literal fast.
  const fields = keys.map((key) => {
    const name = jsonOf(key);
    return `${key === '__proto__' ? `[${name}]` : name}: read(reader, depth)`;
  });
  try {
    const made: unknown = new Function(
      'read',
      'reader',
      'depth',
      `return { ${fields.join(', ')} };`,
    );
    madeFunctions += 1;
    return isMakeObject(made) ? made : undefined;
  } catch {
    // --disallow-code-generation-from-strings: templates do.
    mayMakeCode = false;
    return undefined;
  }
}

function isMakeObject(value: unknown): value is MakeObject {
  return typeof value === 'function';
}

/** Shapes by their key bytes. One for all codecs of a thread. */
export class ShapeTable {
  readonly #slots: (Shape | undefined)[];

  constructor() {
    this.#slots = new Array<Shape | undefined>(1 << slotBits).fill(undefined);
  }

  /** Returns the shape whose keys are the next `sizeBytes`; the reader then stands at the first value. */
  find(reader: ByteReader, sizeBytes: number): Shape {
    const start = reader.take(sizeBytes);
    const slot = hash(reader.view, start, sizeBytes);
    const known = this.#slots[slot];
    if (known?.matches(reader.view, start, sizeBytes)) return known;
    reader.position = start;
    // A copy first: the peer may still change its memory.
    const keys = new ByteReader(reader.copy(sizeBytes));
    const shape = new Shape(readKeys(keys), keys.view);
    this.#slots[slot] = shape;
    return shape;
  }
}

/** Reads the keys behind their size: their count, then each. Input: throws when it is wrong. */
export function readKeys(reader: ByteReader): string[] {
  const count = reader.u32();
  const keys: string[] = [];
  // Each key has at least one byte, so a forged count ends at the limit.
  for (let index = 0; index < count; index += 1) keys.push(readKey(reader));
  if (reader.position !== reader.limit) {
    throw new CodedError(
      'CHANNEL_FRAME_CORRUPT',
      `${count} keys end at ${reader.position} instead of ${reader.limit}`,
    );
  }
  return keys;
}

/** An index into the slots. */
function hash(view: DataView, start: number, sizeBytes: number): number {
  let mixed = sizeBytes;
  let index = 0;
  for (; index + 4 <= sizeBytes; index += 4) {
    mixed = Math.imul(mixed ^ view.getInt32(start + index, true), 0x9e3779b1);
    mixed ^= mixed >>> 15;
  }
  for (; index < sizeBytes; index += 1) {
    mixed = Math.imul(mixed ^ view.getUint8(start + index), 0x9e3779b1);
  }
  return (mixed ^ (mixed >>> 16)) & ((1 << slotBits) - 1);
}
