// Tests that an object is its enumerable data and nothing else: no accessor, symbol or hidden property,
// not closed in any way. Both encoders of values ask here, so that a value means the same
// whichever carries it. No code of the user's runs: callers have found out that it is no Proxy.
// Not here: what lies inside (channels/codec/write.ts, context/values/plain.ts).

import * as types from 'node:util/types';
import { isSharedByOtherCopy } from '../copies.js';
import { descriptorOf } from '../node/descriptors.js';
import { hasPrivateMembers, isSameClass } from '../node/hidden-class.js';
import { jsonOf } from '../node/json.js';

const objectPrototype: object = Object.prototype;
const arrayPrototype: object = Array.prototype;

/** Arrays of each kind of elements that V8 has, the most frequent first. */
const arrays: readonly object[] = [
  [1],
  [{}],
  [1.5],
  Array.from({ length: 1 }),
  new Array(1),
  Object.assign(new Array(2), { 0: 1 }),
  Object.assign(new Array(2), { 0: 1.5 }),
  Object.assign(new Array(2), { 0: {} }),
];
let lastArray: object = arrays[0] ?? [];

/** True: this is certainly a plain array. False says nothing. May be asked about anything. */
export function isUsualArray(value: object): value is readonly unknown[] {
  return isSameClass(lastArray, value);
}

/** True: this is an array with elements, holes and nothing else. Elements may be anything. */
export function isPlainArray(value: readonly unknown[]): boolean {
  for (const each of arrays) {
    if (isSameClass(each, value)) {
      lastArray = each;
      return true;
    }
  }
  if (Object.getPrototypeOf(value) !== arrayPrototype || !Object.isExtensible(value)) return false;
  const keys = Reflect.ownKeys(value);
  for (let index = 0; index < keys.length - 1; index += 1) {
    const key = keys[index];
    // Indices come first: at the first name all of them were seen.
    if (typeof key !== 'string' || !isIndex(key) || !isData(value, key)) return false;
  }
  const isPlain = keys[keys.length - 1] === 'length' && isWritable(value, 'length');
  return isPlain && !hasPrivateMembers(value);
}

const classBits = 8;
/** Objects of classes that were found plain, by a number that their keys have. */
const models: (object | undefined)[] = new Array(1 << classBits).fill(undefined);

/**
 * A plain object of the same class as this record, which is then plain as well; `undefined`: none is
 * known. `hint`: any number that is often the same for objects of the same keys.
 */
export function modelOf(value: object, hint: number): object | undefined {
  const slot = hint & ((1 << classBits) - 1);
  const known = models[slot];
  if (known !== undefined && isSameClass(known, value)) return known;
  if (Object.getPrototypeOf(value) !== objectPrototype || !isSameClass(value, value)) {
    return undefined;
  }
  if (!isPlainRecord(value)) return undefined;
  const model = copiesOf(value).find((copy) => isSameClass(copy, value));
  if (model !== undefined) models[slot] = model;
  return model;
}

/** Copies without what it holds, so that nothing of the user's is kept alive. One may be of its class. */
function copiesOf(value: object): object[] {
  const copy: Record<string, unknown> = { ...value };
  if ('toJSON' in copy) return [];
  for (const key of Object.keys(copy)) {
    const type = typeof copy[key];
    if (type === 'object' || type === 'string') copy[key] = null;
    else if (type !== 'number' && type !== 'boolean' && type !== 'undefined') return [];
  }
  const parsed: unknown = JSON.parse(jsonOf(copy)); // Node 20 makes literals as this does
  return typeof parsed === 'object' && parsed !== null ? [copy, parsed] : [copy];
}

/** True: all that a record, which is no Proxy, has is plain data. */
export function isPlainRecord(value: object): boolean {
  if (!Object.isExtensible(value)) return false;
  for (const key of Reflect.ownKeys(value)) {
    if (typeof key !== 'string' || !isData(value, key)) return false;
  }
  // At last, because it reads a tag, which may be a getter.
  return !isExotic(value) && !hasPrivateMembers(value);
}

/** True: it is more than an object, whatever its prototype was set to. */
function isExotic(value: object): boolean {
  return (
    Object.prototype.toString.call(value) !== '[object Object]' ||
    ArrayBuffer.isView(value) ||
    types.isMap(value) ||
    types.isSet(value) ||
    types.isAnyArrayBuffer(value) ||
    types.isPromise(value) ||
    types.isWeakMap(value) ||
    types.isWeakSet(value) ||
    types.isGeneratorObject(value) ||
    types.isExternal(value) ||
    types.isBoxedPrimitive(value)
  );
}

function isData(value: object, key: string): boolean {
  const descriptor = descriptorOf(value, key);
  return (
    descriptor?.writable === true &&
    descriptor.enumerable === true &&
    descriptor.configurable === true
  );
}

function isWritable(value: object, key: string): boolean {
  return descriptorOf(value, key)?.writable === true;
}

/** True: a key of an array names an element. */
export function isIndex(key: string): boolean {
  return /^(?:0|[1-9]\d{0,9})$/.test(key) && Number(key) < 4_294_967_295;
}

/** A view or buffer of each class that nothing was added to, by its prototype. */
const bare = new Map<unknown, object>(
  [Buffer.alloc(0), new ArrayBuffer(0), new DataView(new ArrayBuffer(0)), ...emptyViews()].map(
    (value) => [Object.getPrototypeOf(value), value],
  ),
);
/** Views of more elements are not listed where the hidden class cannot be compared. */
const maxListed = 1000;

/** True: a buffer or view has no properties but its elements, is not closed, and may be copied. */
export function isBare(value: ArrayBufferView | ArrayBufferLike): boolean {
  const buffer = ArrayBuffer.isView(value) ? value.buffer : value;
  if (value.byteLength === 0 && isDetached(buffer)) return false;
  if (isSharedByOtherCopy(buffer)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  const like = bare.get(prototype);
  if (like !== undefined && isSameClass(like, value)) return true;
  if (!Object.isExtensible(value) || Object.getOwnPropertySymbols(value).length > 0) return false;
  if (hasPrivateMembers(value)) return false;
  const elements = 'length' in value && typeof value.length === 'number' ? value.length : 0;
  const isListed = elements <= maxListed || like === undefined || isSameClass(like, like);
  return !isListed || Reflect.ownKeys(value).length === elements;
}

/** True: its memory was transferred away. */
export function isDetached(buffer: ArrayBufferLike): boolean {
  if (buffer.byteLength > 0) return false;
  try {
    new Uint8Array(buffer);
    return false;
  } catch {
    return true;
  }
}

function emptyViews(): object[] {
  const names =
    'Int8 Uint8 Uint8Clamped Int16 Uint16 Int32 Uint32 Float16 Float32 Float64 BigInt64 BigUint64';
  return names.split(' ').flatMap((name) => {
    const View: unknown = Reflect.get(globalThis, `${name}Array`);
    return typeof View === 'function' ? [Reflect.construct(View, [0])] : [];
  });
}
