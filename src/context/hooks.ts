// Two methods by which a class says itself how its instances travel: an instance method
// `[Symbol.for('manycore.send')]()` returns data that can travel, and a static
// `[Symbol.for('manycore.receive')](data)` makes an instance of it on the other side. The way for
// classes with private fields, and for handles of this process.

import type { AnyFunction } from './types.js';

export const send: unique symbol = Symbol.for('manycore.send');
export const receive: unique symbol = Symbol.for('manycore.receive');

/** The instance method of a class that has both; `undefined` for every other object. */
export function sendHook(value: object): AnyFunction | undefined {
  if (!(send in value)) return undefined;
  const hook: unknown = Reflect.get(value, send);
  return typeof hook === 'function' ? hook : undefined;
}

export function isReceivedClass(value: unknown): value is AnyFunction {
  return typeof value === 'function' && typeof Reflect.get(value, receive) === 'function';
}

/** Makes an instance on this side. */
export function receiveBy(constructor: AnyFunction, data: unknown): unknown {
  const hook: unknown = Reflect.get(constructor, receive);
  if (typeof hook !== 'function') return undefined;
  return Reflect.apply(hook, constructor, [data]);
}
