// What a function or class has beside its code: properties, prototypes, how closed it is. A function made
// again has what its text gives, so only the rest is written.
// Not here: in what a class differs from its text (classes.ts), code and captures (functions.ts).

import * as types from 'node:util/types';
import { descriptorOf, ownValue } from '../internal/index.js';
import { type ClassStates, glanceAt } from './classes.js';
import type { Code } from './code.js';
import { usualName } from './definition.js';
import type { Described } from './describe.js';
import { changeable, type Graph, ownerOf } from './encode.js';
import { builtinPath } from './intrinsics.js';
import { special } from './protocol.js';
import type { AnyFunction } from './types.js';
import { always } from './versions.js';

const ordinaryKeys = new Set<string | symbol>([
  'length',
  'name',
  'prototype',
  'arguments',
  'caller',
]);

/** Whether code and captures are all there is to a function that is no class. */
export function isBare(fn: AnyFunction, described: Described): boolean {
  if (!Object.isExtensible(fn)) return false;
  if (!isUsual(fn, 'name', described) || !isUsual(fn, 'length', described)) return false;
  return Reflect.ownKeys(fn).every((key) => ordinaryKeys.has(key));
}

/** True: nothing that can be listed was added to a function that is no class. */
export function isOnlyText(fn: AnyFunction): boolean {
  return (
    Object.isExtensible(fn) &&
    !hasEnumerable(fn.prototype) &&
    Reflect.ownKeys(fn).every((key) => ordinaryKeys.has(key))
  );
}

/** Writes what a function that is no class has beside its code. */
export function addProperties(
  fn: AnyFunction,
  described: Described,
  index: number,
  graph: Graph,
): void {
  for (const key of Reflect.ownKeys(fn)) {
    const isNamed = key === 'name' || key === 'length';
    if (isNamed ? isUsual(fn, key, described) : ordinaryKeys.has(key)) continue;
    if (!isNamed && graph.isConstant) throw changeable;
    graph.addProperty(index, fn, key);
  }
  for (const key of ['name', 'length']) if (!Object.hasOwn(fn, key)) graph.addAbsence(index, key);
  addAbove(fn, described.code, index, graph);
  addPrototype(fn, index, graph);
  graph.addIntegrity(index, fn);
}

function addPrototype(fn: AnyFunction, index: number, graph: Graph): void {
  const own = descriptorOf(fn, 'prototype');
  if (own === undefined) return;
  const prototype: unknown = own.value;
  const isOwned = types.isGeneratorFunction(fn) || ownerOf(prototype) === fn;
  if (isOwned && typeof prototype === 'object' && prototype !== null) {
    addPrototypeParts(prototype, fn, index, graph);
    if (own.writable === true) return;
  }
  if (graph.isConstant) throw changeable;
  graph.addProperty(index, fn, 'prototype');
}

function addPrototypeParts(prototype: object, fn: AnyFunction, index: number, graph: Graph): void {
  const keys = Reflect.ownKeys(prototype).filter(
    (key) => !(key === 'constructor' && isUsualConstructor(prototype, fn)),
  );
  const above: object | null = Object.getPrototypeOf(prototype);
  const isGenerator = types.isGeneratorFunction(fn);
  const isUsual = isObjectPrototype(above) || (isGenerator && builtinPath(above) !== undefined);
  if (keys.length === 0 && isUsual && Object.isExtensible(prototype)) return;
  if (graph.isConstant) throw changeable;
  const own = graph.indexOf(prototype) ?? graph.add(prototype, [special.prototype, index]);
  for (const key of keys) graph.addProperty(own, prototype, key);
  if (!isUsual) graph.addPrototype(own, above);
  graph.addIntegrity(own, prototype);
}

/** Writes what a bound function has beside its target: `bind` gives it name, length and prototype of that. */
export function addBoundProperties(
  fn: AnyFunction,
  target: AnyFunction,
  given: number,
  index: number,
  graph: Graph,
): void {
  const name = ownValue(target, 'name');
  const length = ownValue(target, 'length');
  const usual: Record<string, unknown> = {
    name: typeof name === 'string' ? `bound ${name}` : undefined,
    length: typeof length === 'number' ? Math.max(0, length - given) : undefined,
  };
  for (const key of Reflect.ownKeys(fn)) {
    const own = descriptorOf(fn, key);
    const isNamed = key === 'name' || key === 'length';
    const isUsual = isNamed && own?.value === usual[key] && !own?.writable && !own?.enumerable;
    if (!(isUsual && own?.configurable)) graph.addProperty(index, fn, key);
  }
  for (const key of ['name', 'length']) if (!Object.hasOwn(fn, key)) graph.addAbsence(index, key);
  const above: object | null = Object.getPrototypeOf(fn);
  if (above !== Object.getPrototypeOf(target)) graph.addPrototype(index, above);
  graph.addIntegrity(index, fn);
}

/** Says what the function or class itself inherits from, where its text does not. */
function addAbove(fn: AnyFunction, code: Code, index: number, graph: Graph): void {
  const above: object | null = Object.getPrototypeOf(fn);
  if (isUsualAbove(above, code)) return;
  if (graph.isConstant) throw changeable;
  graph.addPrototype(index, above);
}

/** Writes in what a class differs from its text, with the version since which it does. */
export function addClassState(
  fn: AnyFunction,
  described: Described,
  states: ClassStates,
  index: number,
  entry: unknown[],
  graph: Graph,
): void {
  const { code, place, privates } = described;
  if (graph.isConstant && code.privateStatics.some((name) => code.writtenPrivates.has(name))) {
    throw changeable;
  }
  const prototype: unknown = fn.prototype;
  const isUsualKey = (target: object, key: string | symbol): boolean => {
    if (target !== fn) return key === 'constructor' && isUsualConstructor(target, fn);
    if (key === 'name' || key === 'length') return isUsual(fn, key, described);
    return key === 'prototype';
  };
  const state = states.read(fn, code, place, isUsualKey, privates);
  const ownIndex = (): number =>
    graph.indexOf(prototype) ?? graph.add(prototype, [special.prototype, index]);
  graph.holders.push(fn);
  for (const { target, key, how, since } of state.differences) {
    const at = target === fn ? index : ownIndex();
    if (how === 'own') graph.addProperty(at, target, key, since);
    else graph.addAbsence(at, key, since, how === 'restored');
  }
  if (state.isRenamed && Object.hasOwn(fn, 'name')) graph.addProperty(index, fn, 'name', always);
  graph.holders.pop();
  const above: object | null = Object.getPrototypeOf(fn);
  if (state.isMoved || !isUsualAbove(above, code)) addClassAbove(index, above, graph);
  if (typeof prototype === 'object' && prototype !== null) {
    const aboveInstances: object | null = Object.getPrototypeOf(prototype);
    if (state.isMoved || !isUsualAboveInstances(fn, aboveInstances, code)) {
      addClassAbove(ownIndex(), aboveInstances, graph);
    }
    if (!Object.isExtensible(prototype)) graph.addIntegrity(ownIndex(), prototype);
  }
  graph.addIntegrity(index, fn);
  const values = graph.at('its private statics', () => graph.cell(...privates));
  const at = entry.push(state.version, values, state.privatesSince) - 1;
  for (const held of privates) graph.noteStatic(held, entry, at);
}

function addClassAbove(index: number, above: object | null, graph: Graph): void {
  if (graph.isConstant) throw changeable;
  graph.addClassAbove(index, above, always);
}

/** Whether instances inherit what the text says. `null`: as after `extends null`. */
function isUsualAboveInstances(fn: AnyFunction, above: object | null, code: Code): boolean {
  if (code.heritageName === undefined && code.heritageSlot === undefined) {
    return above === null || isObjectPrototype(above);
  }
  const base: unknown = Object.getPrototypeOf(fn);
  return typeof base === 'function' && base.prototype === above;
}

/** Whether a function or class of a kept snapshot has, since `glance`, got something new. */
export function glance(fn: AnyFunction): () => boolean {
  if (!isClass(fn)) return () => hasEnumerable(fn) || hasEnumerable(fn.prototype);
  const before = glanceAt(fn);
  return () => {
    const now = glanceAt(fn);
    return now.length !== before.length || now.some((value, at) => !Object.is(value, before[at]));
  };
}

function isClass(fn: AnyFunction): boolean {
  return descriptorOf(fn, 'prototype')?.writable === false;
}

/** Cheaper than a list of its keys: V8 has for-in ready. */
function hasEnumerable(value: unknown): boolean {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false;
  for (const key in value) if (Object.hasOwn(value, key)) return true;
  return false;
}

/** Whether `name` or `length` is as making the function again gives it. */
function isUsual(fn: AnyFunction, key: 'name' | 'length', { code, madeName }: Described): boolean {
  if (key === 'name') return madeName !== undefined && usualName(fn) === madeName;
  const own = descriptorOf(fn, 'length');
  return (
    own?.value === code.givenLength &&
    own.writable === false &&
    own.enumerable === false &&
    (own.configurable === true || Object.isSealed(fn))
  );
}

/** Whether the function has the prototype that its text gives it, of whatever realm. */
function isUsualAbove(above: object | null, code: Code): boolean {
  if (above === Function.prototype) return true;
  if (above === null) return false;
  if (code.heritageName !== undefined || code.heritageSlot !== undefined) return true;
  if (typeof above === 'function') return isObjectPrototype(Object.getPrototypeOf(above));
  return /Function$/.test(Object.prototype.toString.call(above).slice(8, -1));
}

function isObjectPrototype(value: object | null): boolean {
  if (value === Object.prototype) return true;
  return (
    value !== null &&
    Object.getPrototypeOf(value) === null &&
    Object.hasOwn(value, 'hasOwnProperty') &&
    Object.hasOwn(value, 'isPrototypeOf')
  );
}

function isUsualConstructor(prototype: object, fn: AnyFunction): boolean {
  const own = descriptorOf(prototype, 'constructor');
  const isOpen = own?.writable === true || Object.isFrozen(prototype);
  return own?.value === fn && own.enumerable === false && isOpen;
}
