// Objects without parts, which V8 writes by itself: dates, regular expressions, views, boxed primitives.
// Not here: which of them it writes faithfully (plain.ts).

import * as types from 'node:util/types';

/** True: V8 writes it, except for properties that were set on it. */
export function isLeaf(value: object): boolean {
  return (
    types.isDate(value) ||
    types.isRegExp(value) ||
    types.isBoxedPrimitive(value) ||
    ArrayBuffer.isView(value)
  );
}

/** The prototype that V8 gives back for a leaf. */
export function leafPrototype(value: object): object | undefined {
  if (types.isDate(value)) return Date.prototype;
  if (types.isRegExp(value)) return RegExp.prototype;
  if (Buffer.isBuffer(value)) return Buffer.prototype;
  return builtinPrototype(Object.prototype.toString.call(value).slice(8, -1));
}

/** The prototype of the global class `name`. */
export function builtinPrototype(name: string): object | undefined {
  const constructor: unknown = Reflect.get(globalThis, name);
  return typeof constructor === 'function' ? constructor.prototype : undefined;
}
