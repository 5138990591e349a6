// Sets properties of values made from a payload, with the descriptors of the original. Defined instead of
// assigned: `__proto__` is a key like any other, and no setter of the user runs.
// Not here: the order (decode.ts).

import { descriptorOf, tryDefineOwn } from '../../lib/index.js';
import { propertyFlags } from '../protocol.js';
import { corrupt } from '../wire.js';
import { pristineOf } from './pristine.js';

export function isCallable(value: unknown): value is (...args: unknown[]) => unknown {
  return typeof value === 'function';
}

/** `container[key] = value`, for a plain one. */
export function put(container: unknown, key: unknown, value: unknown): void {
  if (typeof container !== 'object' || container === null) throw corrupt('nothing to put into');
  if (typeof key !== 'string' && typeof key !== 'number') throw corrupt('a put has no key');
  tryDefineOwn(container, key, {
    value,
    writable: true,
    enumerable: true,
    configurable: true,
  });
}

/** Creates a key of `target` that is defined later, to keep its place among the others. */
export function reserve(target: object, key: string | symbol): void {
  if (Object.hasOwn(target, key) || !Object.isExtensible(target)) return;
  tryDefineOwn(target, key, { value: undefined, configurable: true });
}

/** Sets, deletes or restores a property, or the prototype of `target`, by the flags of the payload. */
export function define(
  target: object,
  key: string | symbol,
  flags: number,
  cell: readonly unknown[],
): void {
  if ((flags & propertyFlags.above) !== 0) {
    const [above] = cell;
    if (typeof above !== 'object' && typeof above !== 'function') {
      throw corrupt('a prototype is not an object');
    }
    // A class that is here already was closed in an earlier version, and its prototype with it.
    if (Object.isExtensible(target)) Object.setPrototypeOf(target, above);
    return;
  }
  if ((flags & propertyFlags.order) !== 0) {
    reorder(target, cell);
    return;
  }
  if ((flags & propertyFlags.restored) !== 0) {
    const before = pristineOf(target, key);
    if (before !== undefined) tryDefineOwn(target, key, before);
    return;
  }
  if ((flags & propertyFlags.absent) !== 0) {
    if (!Reflect.deleteProperty(target, key)) throw corrupt(`${String(key)} cannot be deleted`);
    return;
  }
  const enumerable = (flags & propertyFlags.enumerable) !== 0;
  const configurable = (flags & propertyFlags.configurable) !== 0;
  const [value, set] = cell;
  // Both halves of an accessor: an omitted one would stay as the text of a class made it.
  const descriptor: object =
    (flags & propertyFlags.accessor) === 0
      ? { value, writable: (flags & propertyFlags.writable) !== 0, enumerable, configurable }
      : { get: accessorOf(value), set: accessorOf(set), enumerable, configurable };
  const isDefined = tryDefineOwn(target, key, descriptor);
  if (!isDefined) throw corrupt(`the property ${String(key)} cannot be defined`);
}

/** Gives all `keys` of `target` their place, also those that are defined later. */
function reorder(target: object, keys: readonly unknown[]): void {
  if (!Object.isExtensible(target)) return;
  const own: unknown[] = Reflect.ownKeys(target);
  let last = -1;
  const first = keys.findIndex((key) => {
    const at = own.indexOf(key);
    if (at < last || at < 0) return true;
    last = at;
    return false;
  });
  for (const key of first < 0 ? [] : keys.slice(first)) {
    if (typeof key !== 'string' && typeof key !== 'symbol') throw corrupt('an order has no key');
    const descriptor = descriptorOf(target, key);
    if (descriptor === undefined) reserve(target, key);
    if (descriptor?.configurable !== true) continue;
    Reflect.deleteProperty(target, key);
    tryDefineOwn(target, key, descriptor);
  }
}

function accessorOf(value: unknown): ((...args: unknown[]) => unknown) | undefined {
  if (value !== undefined && !isCallable(value)) throw corrupt('an accessor is not a function');
  return value;
}
