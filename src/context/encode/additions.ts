// Parts of a function or class beside its code: properties, prototypes, integrity. The text of a re-created
// function gives the other parts, so only these are written.
// Not here: how a class differs from its text (classes.ts), code and captures (functions.ts).

import * as types from 'node:util/types';
import { descriptorOf, ownValue } from '../../lib/index.js';
import type { ClassState, ClassStates } from '../closures/classes.js';
import { usualName } from '../closures/definition.js';
import type { Described } from '../closures/describe.js';
import { special } from '../protocol.js';
import type { Code } from '../text/code.js';
import type { TextMember } from '../text/text-members.js';
import type { AnyFunction } from '../types.js';
import { builtinPath } from '../values/intrinsics.js';
import { ordinaryKeys } from '../values/ordinary.js';
import { always } from '../values/versions.js';
import { changeable, type Graph, ownerOf } from './encode.js';

/** True: a function that is no class can see nothing of itself but its code and captures. */
export function isBare(fn: AnyFunction, described: Described): boolean {
  if (!Object.isExtensible(fn)) return false;
  if (described.code.usesItself && !isUsualAround(fn, described.code)) return false;
  if (!isUsual(fn, 'name', described) || !isUsual(fn, 'length', described)) return false;
  return Reflect.ownKeys(fn).every((key) => ordinaryKeys.has(key));
}

/** Writes the parts of a function, which is no class, that its code does not give. */
export function addProperties(
  fn: AnyFunction,
  described: Described,
  index: number,
  graph: Graph,
): void {
  addOrder(fn, described, index, graph);
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

/** Keys of a new function, in the order in which the language makes them. */
const madeKeys = ['length', 'name', 'arguments', 'caller', 'prototype'];
/** The same for functions that are made without a prototype. */
const madeKeysOfMethods = madeKeys.slice(0, -1);

/** Writes the order of a function's keys where defining them one by one would give another order. */
function addOrder(fn: AnyFunction, { code }: Described, index: number, graph: Graph): void {
  const keys = Reflect.ownKeys(fn);
  const hasPrototype = code.showsMode || types.isGeneratorFunction(fn);
  const made = hasPrototype ? madeKeys : madeKeysOfMethods;
  if (isInOrder(keys, made)) return;
  const isMade = (key: string | symbol) => typeof key === 'string' && made.includes(key);
  const added = keys.filter((key) => !isMade(key) && key !== 'prototype');
  const last = keys.filter((key) => !isMade(key) && key === 'prototype');
  const expected = [...made.filter((key) => keys.includes(key)), ...added, ...last];
  if (keys.some((key, at) => key !== expected[at])) graph.addOrder(index, keys);
}

/** True: `keys` is a subset of `order`, in the same order. */
function isInOrder(keys: readonly (string | symbol)[], order: readonly string[]): boolean {
  let at = 0;
  for (const key of keys) {
    while (at < order.length && order[at] !== key) at += 1;
    if (at === order.length) return false;
    at += 1;
  }
  return true;
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

/** True: `fn` inherits what its text states, and its prototype is as the text made it. */
function isUsualAround(fn: AnyFunction, code: Code): boolean {
  if (!isUsualAbove(Object.getPrototypeOf(fn), code)) return false;
  const own = descriptorOf(fn, 'prototype');
  if (own === undefined) return true;
  const prototype: unknown = own.value;
  const isOwned = types.isGeneratorFunction(fn) || ownerOf(prototype) === fn;
  if (!isOwned || own.writable !== true) return false;
  if (typeof prototype !== 'object' || prototype === null) return false;
  return partsOf(prototype, fn).isUsual;
}

/** Parts of a prototype that the text of `fn` does not give it. */
function partsOf(prototype: object, fn: AnyFunction) {
  const keys = Reflect.ownKeys(prototype).filter(
    (key) => !(key === 'constructor' && isUsualConstructor(prototype, fn)),
  );
  const above: object | null = Object.getPrototypeOf(prototype);
  const isGenerator = types.isGeneratorFunction(fn);
  const isOfObjects = isObjectPrototype(above);
  const isAsMade = isGenerator ? !isOfObjects && builtinPath(above) !== undefined : isOfObjects;
  const isUsual = keys.length === 0 && isAsMade && Object.isExtensible(prototype);
  return { keys, above, isAsMade, isUsual };
}

function addPrototypeParts(prototype: object, fn: AnyFunction, index: number, graph: Graph): void {
  const { keys, above, isAsMade, isUsual } = partsOf(prototype, fn);
  if (isUsual) return;
  if (graph.isConstant) throw changeable;
  const own = graph.indexOf(prototype) ?? graph.add(prototype, [special.prototype, index]);
  for (const key of keys) graph.addProperty(own, prototype, key);
  if (!isAsMade) graph.addPrototype(own, above);
  graph.addIntegrity(own, prototype);
}

/**
 * Writes the parts of a bound function beside its target, from which `bind` takes name, length and prototype.
 */
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

/** Writes the prototype of the function or class itself, where it differs from its text. */
function addAbove(fn: AnyFunction, code: Code, index: number, graph: Graph): void {
  const above: object | null = Object.getPrototypeOf(fn);
  if (isUsualAbove(above, code)) return;
  if (graph.isConstant) throw changeable;
  graph.addPrototype(index, above);
}

/** Reads the differences between a class and its text. */
export function readClassState(
  fn: AnyFunction,
  described: Described,
  states: ClassStates,
): ClassState {
  const { code, place, privates } = described;
  const isUsualKey = (target: object, key: string | symbol): boolean => {
    if (target !== fn) return key === 'constructor' && isUsualConstructor(target, fn);
    if (key === 'name' || key === 'length') return isUsual(fn, key, described);
    return key === 'prototype';
  };
  return states.read(fn, code, place, isUsualKey, privates);
}

/** Writes the differences between a class and its text, with the version in which each began. */
export function addClassState(
  fn: AnyFunction,
  { code, privates }: Described,
  state: ClassState,
  index: number,
  entry: unknown[],
  graph: Graph,
): void {
  if (graph.isConstant && code.privateStatics.some((name) => code.writtenPrivates.has(name))) {
    throw changeable;
  }
  const prototype: unknown = fn.prototype;
  for (const each of state.members) addMember(fn, each, graph);
  const ownIndex = (): number =>
    graph.indexOf(prototype) ?? graph.add(prototype, [special.prototype, index]);
  for (const target of state.reordered) {
    graph.addOrder(target === fn ? index : ownIndex(), Reflect.ownKeys(target), always);
  }
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

/** Writes the changes of a function that the text of a class makes. */
function addMember(
  owner: AnyFunction,
  { fn, key, changed, isMoved }: TextMember,
  graph: Graph,
): void {
  if (graph.isConstant) graph.watched.set(fn, owner);
  if (changed.length === 0 && !isMoved && Object.isExtensible(fn)) return;
  const own = graph.memberIndex(fn);
  if (own === undefined) return; // written before its class, so the graph is written again
  graph.at(`.${String(key)}`, () => {
    for (const each of changed) {
      if (Object.hasOwn(fn, each)) graph.addProperty(own, fn, each, always);
      else graph.addAbsence(own, each, always);
    }
    if (isMoved) addClassAbove(own, Object.getPrototypeOf(fn), graph);
    graph.addIntegrity(own, fn);
  });
}

function addClassAbove(index: number, above: object | null, graph: Graph): void {
  if (graph.isConstant) throw changeable;
  graph.addClassAbove(index, above, always);
}

/** True: instances inherit what the text states, or `null`, as after `extends null`. */
function isUsualAboveInstances(fn: AnyFunction, above: object | null, code: Code): boolean {
  if (code.heritageName === undefined && code.heritageSlot === undefined) {
    return above === null || isObjectPrototype(above);
  }
  const base: unknown = Object.getPrototypeOf(fn);
  return typeof base === 'function' && base.prototype === above;
}

/** True: `name` or `length` is as re-creating the function gives it. */
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

/** True: the function has the prototype that its text gives it, in any realm. */
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
