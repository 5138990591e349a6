// Tests whether V8's serializer alone carries a value faithfully. The serializer silently drops prototypes,
// accessors, symbol keys, non-enumerable properties, integrity and details of errors, so the value is checked
// first. This is on the path of every call with objects: no allocation but the set that cycles need.
// Not here: writing the rest (encode.ts).

import * as types from 'node:util/types';
import {
  descriptorOf,
  hasPrivateMembers,
  isBare,
  isPlainArray,
  isPlainRecord,
  modelOf,
} from '../../lib/index.js';

/** Longer arrays may be all holes: the slow path reads their keys. */
const maxElements = 10_000_000;
const objectPrototype: object = Object.prototype;
const mapPrototype: object = Map.prototype;
const setPrototype: object = Set.prototype;

/** Objects without parts, which V8 copies whole. Each only when it has no properties of its own. */
const leafPrototypes = new Set<object>([
  Date.prototype,
  RegExp.prototype,
  Number.prototype,
  String.prototype,
  Boolean.prototype,
]);

const viewPrototypes = new Set<object>(
  [
    'Int8Array',
    'Uint8Array',
    'Uint8ClampedArray',
    'Int16Array',
    'Uint16Array',
    'Int32Array',
    'Uint32Array',
    'Float16Array',
    'Float32Array',
    'Float64Array',
    'BigInt64Array',
    'BigUint64Array',
    'DataView',
    'Buffer',
  ].flatMap((name) => {
    const constructor: unknown = Reflect.get(globalThis, name);
    return typeof constructor === 'function' ? [constructor.prototype] : [];
  }),
);

/** True: `v8.serialize` keeps everything of `value`. False: it may not. */
export function isPlain(value: unknown): boolean {
  if (isPlainPrimitive(value)) return true;
  if (typeof value !== 'object' || value === null) return false;
  return isPlainObject(value, new Set());
}

/** The same; false where the test fails, as for values that are nested too deeply. */
export function isSurelyPlain(value: unknown): boolean {
  try {
    return isPlain(value);
  } catch {
    return false;
  }
}

export function isPlainPrimitive(value: unknown): boolean {
  switch (typeof value) {
    case 'object':
      return value === null;
    case 'function':
    case 'symbol':
      return false;
    default:
      return true;
  }
}

function isPlainObject(value: object, seen: Set<object>): boolean {
  if (seen.has(value)) return true;
  seen.add(value);
  if (types.isProxy(value)) return false; // tested before one of its traps is called
  if (Array.isArray(value)) return isPlainArray(value) && hasPlainElements(value, seen);
  if (ArrayBuffer.isView(value)) return isPlainView(value);
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === objectPrototype) return hasPlainProperties(value, seen);
  if (typeof prototype !== 'object' || prototype === null) return false;
  if (leafPrototypes.has(prototype)) return isBareLeaf(value);
  if (prototype === mapPrototype && types.isMap(value)) return isPlainMap(value, seen);
  if (prototype === setPrototype && types.isSet(value)) return isPlainSet(value, seen);
  return false;
}

/** True: a typed array, Buffer or DataView of this realm, whose memory has one size. */
function isPlainView(value: ArrayBufferView): boolean {
  return isBuiltinView(value) && isBare(value) && !isResizable(value.buffer);
}

/** True: a typed array, Buffer or DataView, and no class of the user. */
function isBuiltinView(value: object): boolean {
  return ArrayBuffer.isView(value) && viewPrototypes.has(Object.getPrototypeOf(value));
}

/** True: its size can change, which is sent too. */
export function isResizable(buffer: ArrayBufferLike): boolean {
  return 'resizable' in buffer && buffer.resizable === true;
}

function isPart(value: unknown, seen: Set<object>): boolean {
  if (typeof value === 'object' && value !== null) return isPlainObject(value, seen);
  return typeof value !== 'function' && typeof value !== 'symbol';
}

function hasPlainProperties(value: object, seen: Set<object>): boolean {
  const keys = Object.keys(value);
  const hint = keys.length + (keys[0]?.length ?? 0) * 16;
  if (modelOf(value, hint) === undefined && !isPlainRecord(value)) return false;
  for (const key of keys) if (!isPart(Reflect.get(value, key), seen)) return false;
  return true;
}

function hasPlainElements(value: readonly unknown[], seen: Set<object>): boolean {
  if (value.length > maxElements) return false;
  for (let index = 0; index < value.length; index += 1)
    if (!isPart(value[index], seen)) return false;
  return true;
}

function isBareLeaf(value: object): boolean {
  if (!Object.isExtensible(value) || hasPrivateMembers(value)) return false;
  const own = Reflect.ownKeys(value).length;
  if (types.isStringObject(value)) return own === value.valueOf().length + 1;
  // V8 does not write `lastIndex`.
  if (types.isRegExp(value)) return own === 1 && isFresh(value);
  const isLeaf = types.isDate(value) || types.isNumberObject(value) || types.isBooleanObject(value);
  return isLeaf && own === 0;
}

function isFresh(value: RegExp): boolean {
  const lastIndex = descriptorOf(value, 'lastIndex');
  return lastIndex?.writable === true && Object.is(lastIndex.value, 0);
}

function isPlainMap(value: Map<unknown, unknown>, seen: Set<object>): boolean {
  if (hasMore(value)) return false;
  for (const [key, entry] of value) if (!isPart(key, seen) || !isPart(entry, seen)) return false;
  return true;
}

function isPlainSet(value: Set<unknown>, seen: Set<object>): boolean {
  if (hasMore(value)) return false;
  for (const entry of value) if (!isPart(entry, seen)) return false;
  return true;
}

/** True: a Map or Set is more than its entries. */
function hasMore(value: object): boolean {
  return (
    Reflect.ownKeys(value).length > 0 || !Object.isExtensible(value) || hasPrivateMembers(value)
  );
}
