// Objects of other realms: vm contexts, and test runners that use them. Their `Array` is not ours, and no
// worker has theirs. So their objects travel as in a structured clone: they become objects of the peer's
// realm. Loaded in such a context itself, this library gives received values the classes of that context.

import * as types from 'node:util/types';
import vm from 'node:vm';
import { isMainRealm, ownValue, sourceText } from '../../lib/index.js';
import type { AnyFunction } from '../types.js';

const names = new Set(
  (
    'Object Array Function Map Set Date RegExp Number String Boolean BigInt Symbol Promise ' +
    'Error TypeError RangeError SyntaxError ReferenceError EvalError URIError AggregateError ' +
    'ArrayBuffer SharedArrayBuffer DataView Int8Array Uint8Array Uint8ClampedArray Int16Array ' +
    'Uint16Array Int32Array Uint32Array Float16Array Float32Array Float64Array BigInt64Array ' +
    'BigUint64Array WeakMap WeakSet WeakRef'
  ).split(' '),
);

const twins = new WeakMap<object, object | false>();

/** Our prototype for one of another realm; `undefined`: it is ours, or a class of the user. */
export function twinHere(prototype: object): object | undefined {
  const known = twins.get(prototype) ?? findTwin(prototype) ?? false;
  twins.set(prototype, known);
  return known === false ? undefined : known;
}

function findTwin(prototype: object): object | undefined {
  const theirs: unknown = ownValue(prototype, 'constructor');
  if (typeof theirs !== 'function' || theirs.prototype !== prototype) return undefined;
  const ours = constructorHere(theirs);
  return ours === theirs ? undefined : ours.prototype;
}

/** The same built-in class of this realm; the class itself when it is ours or the user's. */
export function constructorHere(constructor: AnyFunction): AnyFunction {
  if (!names.has(constructor.name)) return constructor;
  const ours: unknown = Reflect.get(globalThis, constructor.name);
  if (typeof ours !== 'function' || constructor instanceof Function) return constructor;
  const text = sourceText(constructor);
  return text === sourceText(ours) ? ours : constructor;
}

/** The prototype of `value` as a peer has it. */
export function prototypeHere(value: object): object | null {
  const prototype: object | null = Object.getPrototypeOf(value);
  return prototype === null ? null : (twinHere(prototype) ?? prototype);
}

/** Gives all of `value`, which V8 made with the classes of the main realm, the classes of this realm. */
export function adopt(value: unknown): void {
  if (isMainRealm) return;
  const found = new Set<object>();
  const note = (part: unknown): void => {
    if (typeof part === 'object' && part !== null) found.add(part);
  };
  note(value);
  for (const each of found) {
    const prototype = prototypeHere(each);
    if (prototype !== Object.getPrototypeOf(each)) Object.setPrototypeOf(each, prototype);
    if (ArrayBuffer.isView(each)) {
      note(each.buffer);
      continue; // its elements are numbers
    }
    if (types.isMap(each)) Map.prototype.forEach.call(each, (part, key) => [key, part].map(note));
    if (types.isSet(each)) Set.prototype.forEach.call(each, note);
    for (const part of Object.values(each)) note(part);
  }
}

/**
 * `vm.compileFunction` for this realm. That alone makes functions of the main realm, whose `Map` and `Array`
 * are not those of a context. Only the `eval` of a context compiles for it from inside. Lines stay, columns
 * of the first line do not.
 */
export function compileHere(
  source: string,
  parameters: readonly string[],
  options: {
    readonly filename: string;
    readonly lineOffset: number;
    readonly columnOffset: number;
  },
): unknown {
  if (isMainRealm) return vm.compileFunction(source, parameters, options);
  const lines = '\n'.repeat(Math.max(0, options.lineOffset));
  const text = `${lines}(function(${parameters.join()}){${source}\n})\n//# sourceURL=${options.filename}`;
  const evaluate: unknown = Reflect.get(globalThis, 'eval');
  return typeof evaluate === 'function' ? Reflect.apply(evaluate, undefined, [text]) : undefined;
}
