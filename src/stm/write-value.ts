// Turns a value into the three words of a TVar, or into bytes where it is larger. No code of the program runs:
// accessors, proxies and instances are refused by name.
// Not here: the formats (kinds.ts), reading them (read-value.ts).

import { isProxy, isUint8Array } from 'node:util/types';
import { CodedError } from '../errors.js';
import { descriptorOf, inWords } from '../lib/index.js';
import {
  KIND_BIGINT64,
  KIND_BYTES,
  KIND_FALSE,
  KIND_FLOAT64,
  KIND_INT32,
  KIND_NULL,
  KIND_TRUE,
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

/** A TVar in the memory. */
export interface TVarName {
  readonly at: number;
  readonly header: number;
}

/** A TVar as a value, or a collection for which it stands: `kind` says which. */
export interface SharedName extends TVarName {
  readonly kind: number;
}

/** A value in words. `bytes`: its bytes, which go into an object of their own; `lo` and `hi` follow from it. */
export interface Words {
  kind: number;
  lo: number;
  hi: number;
  bytes: Uint8Array | undefined;
}

const float = new Float64Array(1);
const big = new BigInt64Array(float.buffer);
const halves = new Int32Array(float.buffer);
const wideCharacter = /[^\0-\xff]/;
const lineBreaks = /[\p{Cc}\u2028\u2029]+/gu;
/** Longest path, and longest reason, in a message. */
const maxPartLength = 120;
const lengthOfBytes = methodGetting('length');

/** One value at a time. */
export class ValueWriter {
  readonly #nameOf: (value: object) => SharedName | undefined;
  readonly #bytes = Buffer.allocUnsafeSlow(MAX_VALUE_BYTES);
  #end = 0;

  /** `nameOf`: `undefined` for what is no TVar and no collection. */
  constructor(nameOf: (value: object) => SharedName | undefined) {
    this.#nameOf = nameOf;
  }

  /** Writes `value` into `words`. Throws `STM_VALUE`, `STM_VALUE_TOO_LARGE`. */
  write(value: unknown, words: Words): void {
    words.lo = 0;
    words.hi = 0;
    words.bytes = undefined;
    if (typeof value === 'number') {
      if ((value | 0) === value && !Object.is(value, -0)) {
        words.kind = KIND_INT32;
        words.lo = value;
        return;
      }
      float[0] = value;
      this.#takeHalves(KIND_FLOAT64, words);
    } else if (value === undefined) words.kind = KIND_UNDEFINED;
    else if (value === null) words.kind = KIND_NULL;
    else if (typeof value === 'boolean') words.kind = value ? KIND_TRUE : KIND_FALSE;
    else if (typeof value === 'bigint' && BigInt.asIntN(64, value) === value) {
      big[0] = value;
      this.#takeHalves(KIND_BIGINT64, words);
    } else this.#writeLarge(value, words);
  }

  #takeHalves(kind: number, words: Words): void {
    words.kind = kind;
    words.lo = halves[0] ?? 0;
    words.hi = halves[1] ?? 0;
  }

  #writeLarge(value: unknown, words: Words): void {
    const name = typeof value === 'object' && value !== null ? this.#nameOf(value) : undefined;
    if (name !== undefined) {
      words.kind = name.kind;
      words.lo = name.at;
      words.hi = name.header;
      return;
    }
    this.#end = 0;
    this.#add(value, '', 0);
    words.kind = KIND_BYTES;
    words.bytes = new Uint8Array(this.#bytes.subarray(0, this.#end));
    words.hi = this.#end;
  }

  /** The place of `sizeBytes` more bytes. */
  #room(sizeBytes: number): number {
    const start = this.#end;
    this.#end += sizeBytes;
    if (this.#end > MAX_VALUE_BYTES) {
      throw new CodedError(
        'STM_VALUE_TOO_LARGE',
        `a value of a TVar takes more than ${MAX_VALUE_BYTES} bytes: divide it among several TVars`,
      );
    }
    return start;
  }

  #addTag(tag: number): void {
    const at = this.#room(1);
    this.#bytes[at] = tag;
  }

  #addCount(tag: number, count: number): void {
    this.#addTag(tag);
    const at = this.#room(4);
    this.#bytes.writeUInt32LE(count, at);
  }

  #add(value: unknown, path: string, depth: number): void {
    if (depth > MAX_DEPTH) {
      throw unstorable(path, `is nested deeper than ${MAX_DEPTH} levels, or contains itself`);
    }
    switch (typeof value) {
      case 'undefined':
        this.#addTag(KIND_UNDEFINED);
        break;
      case 'boolean':
        this.#addTag(value ? KIND_TRUE : KIND_FALSE);
        break;
      case 'number': {
        this.#addTag(KIND_FLOAT64);
        const at = this.#room(8);
        this.#bytes.writeDoubleLE(value, at);
        break;
      }
      case 'bigint':
        this.#addText(TAG_BIGINT, value.toString(16));
        break;
      case 'string':
        this.#addString(value);
        break;
      case 'object':
        if (value === null) this.#addTag(KIND_NULL);
        else this.#addObject(value, path, depth);
        break;
      default:
        throw unstorable(path, `is ${inWords(value)}`);
    }
  }

  #addString(text: string): void {
    if (!wideCharacter.test(text)) {
      this.#addText(TAG_LATIN, text);
      return;
    }
    this.#addCount(TAG_WIDE, text.length * 2);
    const at = this.#room(text.length * 2);
    this.#bytes.write(text, at, 'utf16le');
  }

  #addText(tag: number, text: string): void {
    this.#addCount(tag, text.length);
    const at = this.#room(text.length);
    this.#bytes.write(text, at, 'latin1');
  }

  #addObject(value: object, path: string, depth: number): void {
    if (isProxy(value)) throw unstorable(path, 'is a proxy');
    const name = this.#nameOf(value);
    if (name !== undefined) this.#addName(name);
    else if (isUint8Array(value)) this.#addBytes(value);
    else if (Array.isArray(value)) this.#addArray(value, path, depth);
    else this.#addFields(value, path, depth);
  }

  #addFields(value: object, path: string, depth: number): void {
    const prototype: unknown = Object.getPrototypeOf(value);
    if (!isOrdinary(prototype)) throw unstorable(path, `is ${kindOf(value)}`);
    const keys = Reflect.ownKeys(value);
    this.#addCount(prototype === null ? TAG_BARE : TAG_OBJECT, keys.length);
    for (const key of keys) {
      if (typeof key !== 'string') throw unstorable(path, `has the symbol ${String(key)}`);
      this.#addString(key);
      this.#add(dataAt(value, key, path), `${path}.${key}`, depth + 1);
    }
  }

  #addName({ at, header, kind }: SharedName): void {
    this.#addTag(kind);
    const start = this.#room(8);
    this.#bytes.writeInt32LE(at, start);
    this.#bytes.writeInt32LE(header, start + 4);
  }

  #addBytes(value: Uint8Array): void {
    const length: unknown = Reflect.apply(lengthOfBytes, value, []); // not a property of the program
    if (typeof length !== 'number') throw new TypeError('no length of bytes');
    this.#addCount(TAG_UINT8_ARRAY, length);
    const at = this.#room(length);
    this.#bytes.set(value, at);
  }

  #addArray(value: readonly unknown[], path: string, depth: number): void {
    if (!isPrototypeOfArrays(Object.getPrototypeOf(value))) {
      throw unstorable(path, `is ${kindOf(value)}`);
    }
    if (Reflect.ownKeys(value).length !== value.length + 1) {
      throw unstorable(path, 'is an array with holes or names');
    }
    this.#addCount(TAG_ARRAY, value.length);
    for (let index = 0; index < value.length; index += 1) {
      this.#add(dataAt(value, String(index), path), `${path}[${index}]`, depth + 1);
    }
  }
}

/** The method behind a property that all typed arrays have. */
function methodGetting(name: string): () => unknown {
  const get = descriptorOf(Object.getPrototypeOf(Uint8Array.prototype), name)?.get;
  if (get === undefined) throw new TypeError(`typed arrays have no ${name}`);
  return get;
}

/** True: the prototype of plain objects, of this realm or another one. */
function isOrdinary(prototype: unknown): boolean {
  if (prototype === null || prototype === Object.prototype) return true;
  if (typeof prototype !== 'object' || isProxy(prototype)) return false;
  // A prototype that a program made of nothing has no such method.
  return Object.getPrototypeOf(prototype) === null && hasMethod(prototype, 'propertyIsEnumerable');
}

/** True: the prototype of arrays, of this realm or another one. */
function isPrototypeOfArrays(prototype: unknown): boolean {
  if (prototype === Array.prototype) return true;
  if (!Array.isArray(prototype) || isProxy(prototype)) return false;
  const above: unknown = Object.getPrototypeOf(prototype);
  return above !== null && isOrdinary(above) && hasMethod(prototype, 'copyWithin');
}

function hasMethod(object: object, name: string): boolean {
  return typeof descriptorOf(object, name)?.value === 'function';
}

/** The value of a property that is plain data: no accessor runs. */
function dataAt(value: object, key: string, path: string): unknown {
  const descriptor = descriptorOf(value, key);
  if (descriptor === undefined || !('value' in descriptor) || descriptor.enumerable !== true) {
    throw unstorable(`${path}.${key}`, 'is an accessor or hidden');
  }
  return descriptor.value;
}

function unstorable(path: string, why: string): CodedError {
  const what = path === '' ? 'the value' : `value${inOneLine(path)}`;
  return new CodedError(
    'STM_VALUE',
    `${what} ${inOneLine(why)}: a TVar holds primitives, plain objects, arrays, Uint8Arrays, TVars and collections`,
  );
}

/** A part of a message, whatever names it has. */
function inOneLine(text: string): string {
  const line = text.replace(lineBreaks, ' ');
  if (line.length <= maxPartLength) return line;
  return `${line.slice(0, maxPartLength / 2)} … ${line.slice(-maxPartLength / 2)}`;
}

function kindOf(value: object): string {
  const prototype: unknown = Object.getPrototypeOf(value);
  const name = isPlainly(prototype) ? nameOfConstructor(prototype) : undefined;
  return typeof name === 'string' && name !== '' && name !== 'Object'
    ? `an instance of ${name}`
    : 'an object with a prototype of its own';
}

/** Not by `get`: no accessor runs. */
function nameOfConstructor(prototype: object): unknown {
  const constructor: unknown = descriptorOf(prototype, 'constructor')?.value;
  return isPlainly(constructor) ? descriptorOf(constructor, 'name')?.value : undefined;
}

/** True: an object or a function whose properties can be read without a call. */
function isPlainly(value: unknown): value is object {
  return (
    (typeof value === 'object' ? value !== null : typeof value === 'function') && !isProxy(value)
  );
}
