// Functions to which nothing was added.

import type { AnyFunction } from '../types.js';

/** Keys that functions have by themselves. */
export const ordinaryKeys: ReadonlySet<string | symbol> = new Set<string | symbol>([
  'length',
  'name',
  'prototype',
  'arguments',
  'caller',
]);

/** True: no enumerable property was added to a function that is no class. */
export function isOnlyText(fn: AnyFunction): boolean {
  return (
    Object.isExtensible(fn) &&
    !hasEnumerable(fn.prototype) &&
    Reflect.ownKeys(fn).every((key) => ordinaryKeys.has(key))
  );
}

/** Cheaper than a list of the keys: V8 has for-in ready. */
function hasEnumerable(value: unknown): boolean {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false;
  for (const key in value) if (Object.hasOwn(value, key)) return true;
  return false;
}
