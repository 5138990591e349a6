// Whether V8's serializer alone carries a value faithfully. It silently drops prototypes, accessors,
// symbol keys, non-enumerable properties, integrity and what errors carry, so we look first. This is
// on the path of every call with objects: no allocation but the set that cycles need.
// Not here: what to do with the rest (encode.ts).

const arrayPrototype: object = Array.prototype;
const objectPrototype: object = Object.prototype;
const mapPrototype: object = Map.prototype;
const setPrototype: object = Set.prototype;

/** Objects without parts, which V8 copies whole. Each only when it has no properties of its own. */
const leafPrototypes = new Set<object>([
  Date.prototype,
  RegExp.prototype,
  ArrayBuffer.prototype,
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
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === objectPrototype) return hasPlainProperties(value, seen);
  if (prototype === arrayPrototype) return Array.isArray(value) && isPlainArray(value, seen);
  if (typeof prototype !== 'object' || prototype === null) return false;
  if (isBuiltinView(value)) return Object.isExtensible(value);
  if (leafPrototypes.has(prototype)) return isBareLeaf(value);
  if (prototype === mapPrototype && value instanceof Map) return isPlainMap(value, seen);
  if (prototype === setPrototype && value instanceof Set) return isPlainSet(value, seen);
  return false;
}

/** A typed array, Buffer or DataView; what was set on it beside its elements stays behind. */
export function isBuiltinView(value: object): boolean {
  return ArrayBuffer.isView(value) && viewPrototypes.has(Object.getPrototypeOf(value));
}

function isPart(value: unknown, seen: Set<object>): boolean {
  if (typeof value === 'object' && value !== null) return isPlainObject(value, seen);
  return typeof value !== 'function' && typeof value !== 'symbol';
}

function hasPlainProperties(value: object, seen: Set<object>): boolean {
  if (!Object.isExtensible(value)) return false;
  if (Symbol.toStringTag in value) return false; // boxed exotic objects of other kinds
  // Names and symbols apart: V8 lists names ten times faster than Reflect.ownKeys lists both.
  if (Object.getOwnPropertySymbols(value).length > 0) return false;
  for (const key of Object.getOwnPropertyNames(value)) {
    const descriptor = Object.getOwnPropertyDescriptor(value, key);
    if (descriptor === undefined || descriptor.enumerable !== true) return false;
    if (descriptor.writable !== true || descriptor.configurable !== true) return false;
    if (!isPart(descriptor.value, seen)) return false;
  }
  return true;
}

function isPlainArray(value: unknown[], seen: Set<object>): boolean {
  if (!Object.isExtensible(value) || value.length > 10_000_000) return false;
  for (let index = 0; index < value.length; index += 1) {
    const entry: unknown = value[index];
    if (typeof entry === 'object' && entry !== null) {
      if (!isPlainObject(entry, seen)) return false;
    } else if (typeof entry === 'function' || typeof entry === 'symbol') return false;
  }
  // Holes or further properties: the slow path looks closer. V8 keeps further plain properties, so
  // for long arrays symbols are all that matters.
  if (Object.getOwnPropertySymbols(value).length > 0) return false;
  return value.length > 1000 || Object.getOwnPropertyNames(value).length === value.length + 1;
}

function isBareLeaf(value: object): boolean {
  if (!Object.isExtensible(value)) return false;
  if (value instanceof String) return Object.keys(value).length === value.length;
  const own = Reflect.ownKeys(value);
  return own.length === 0 || (own.length === 1 && own[0] === 'lastIndex' && isFresh(value));
}

/** V8 does not write `lastIndex`. */
function isFresh(value: object): boolean {
  return value instanceof RegExp && value.lastIndex === 0;
}

function isPlainMap(value: Map<unknown, unknown>, seen: Set<object>): boolean {
  if (Reflect.ownKeys(value).length > 0 || !Object.isExtensible(value)) return false;
  for (const [key, entry] of value) if (!isPart(key, seen) || !isPart(entry, seen)) return false;
  return true;
}

function isPlainSet(value: Set<unknown>, seen: Set<object>): boolean {
  if (Reflect.ownKeys(value).length > 0 || !Object.isExtensible(value)) return false;
  for (const entry of value) if (!isPart(entry, seen)) return false;
  return true;
}
