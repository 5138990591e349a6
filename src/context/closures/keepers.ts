// Collections and symbols around a class, by which its module may keep a part of each instance. They may be
// in its variables, statics and private statics, in objects and classes that it names, and in variables of
// functions that it names. Variables are read once where they hold one value; objects at each export, because
// they may get one later. A class that is copied brings along what it keeps, except for the weak tables of
// modules that its code uses.
// Not here: which values a worker imports again (hidden-state.ts).

import * as types from 'node:util/types';
import { descriptorOf, descriptorsOf, sourceText } from '../../lib/index.js';
import type { Around } from '../modules/owners.js';
import { isOurs } from '../modules/resolve-module.js';
import { bindingAt, type Place } from '../modules/scripts.js';
import { type Code, readCode } from '../text/code.js';
import { type Binding, isConstant } from '../text/scope.js';
import type { AnyFunction } from '../types.js';
import { builtinPath, nodeModulePath } from '../values/intrinsics.js';
import { canInspect, inspectSelf } from './inspector.js';
import { variablesIn } from './scopes.js';

/** A collection or a symbol that the code of a class can reach. */
export type Keeper = object | symbol;

/** Steps from a class to the values that its variables, statics and functions lead to. */
const maxSteps = 3;
const maxParts = 300;
/** Functions that are read for one class: one costs 0.1 ms. */
const maxFunctions = 16;
/** Objects with more properties are tables of data. */
const maxProperties = 100;

/** The values that a function sees. `isSettled`: none of them can be replaced. */
interface Seen {
  readonly values: readonly unknown[];
  readonly isSettled: boolean;
}

/** Finds functions in their scripts: describe.ts. */
interface Finder {
  around(fn: AnyFunction): Around | undefined;
  placeOf(fn: AnyFunction): Place | undefined;
  scriptOf(fn: AnyFunction): string | undefined;
}

/** All collections and symbols around a class; only those that its code names; of these only the imports. */
type Which = 'all' | 'named' | 'imports';

const nothing: Seen = { values: [], isSettled: true };

/** True: a worker imports the value of a function's variable. */
type IsImport = (value: unknown, binding: Binding | undefined) => boolean;

export class Keepers {
  readonly #finder: Finder;
  readonly #isImport: IsImport;
  readonly #settled = new WeakMap<AnyFunction, readonly unknown[]>();
  /** Results of one export. */
  readonly #found = new Map<AnyFunction, readonly Keeper[]>();
  readonly #tables = new WeakSet<object>();

  constructor(finder: Finder, isImport: IsImport) {
    this.#finder = finder;
    this.#isImport = isImport;
  }

  /** Clears the state of one export. */
  forget(): void {
    this.#found.clear();
  }

  /** The present keepers around the class `owner`. `isCopied`: its code travels. */
  around(owner: AnyFunction, isCopied: boolean): readonly Keeper[] {
    const known = this.#found.get(owner);
    if (known !== undefined) return known;
    const found = isCopied
      ? this.#reachedFrom(this.#seenBy(owner, 'imports'), owner).filter(isWeak)
      : this.#reachedFrom([...this.#seenBy(owner, 'all'), ...this.#propertiesOf(owner)], owner);
    this.#found.set(owner, found);
    return found;
  }

  #reachedFrom(parts: readonly unknown[], owner: AnyFunction): Keeper[] {
    const keepers: Keeper[] = [];
    const seen = new Set<unknown>([owner]);
    let functions = 1;
    let level = parts;
    for (let step = 1; step <= maxSteps; step += 1) {
      const next: unknown[] = [];
      for (const part of level) {
        if (seen.has(part) || seen.size > maxParts) continue;
        if (isKeeper(part)) keepers.push(part);
        else if (!isOpen(part)) continue;
        else {
          if (typeof part === 'function' && functions < maxFunctions) {
            functions += 1;
            next.push(...this.#seenBy(part, 'named'));
          }
          next.push(...this.#propertiesOf(part));
        }
        seen.add(part);
      }
      level = next;
    }
    return keepers;
  }

  #seenBy(fn: AnyFunction, which: Which): readonly unknown[] {
    const settled = this.#settled.get(fn);
    if (settled !== undefined) return settled;
    const code = readCode(sourceText(fn));
    if (code === undefined || !canInspect()) return [];
    const variables = this.#variablesOf(fn, code, which);
    const privates = which === 'imports' ? nothing : privatesOf(fn, code);
    const values = [...variables.values, ...privates.values];
    if (variables.isSettled && privates.isSettled) this.#settled.set(fn, values);
    return values;
  }

  #variablesOf(fn: AnyFunction, code: Code, which: Which): Seen {
    // This library notes much about values of the program, and none of it is a part of them.
    if (isOurs(this.#finder.scriptOf(fn) ?? '')) return nothing;
    const around = this.#finder.around(fn);
    const place = this.#finder.placeOf(fn);
    if (around === undefined || place === undefined) return nothing;
    const named = new Set(code.freeNames);
    const values: unknown[] = [];
    let isSettled = true;
    for (const [name, value] of around.scopes.flatMap(variablesIn)) {
      const isDirect = which === 'all' && (!code.isClass || isKeeper(value));
      if (!named.has(name) && which !== 'all') continue;
      const binding = bindingAt(place, name);
      const isFixed = value !== undefined && binding !== undefined && isConstant(binding);
      if (!isFixed && mayBecomeKeeper(value)) isSettled = false;
      if (which === 'imports' && !this.#isImport(value, binding)) continue;
      if (isDirect || named.has(name)) values.push(value);
    }
    return { values, isSettled };
  }

  /** Values of data properties; no getter runs. The members of a class see what the class sees. */
  #propertiesOf(holder: object): unknown[] {
    if (this.#tables.has(holder)) return [];
    const isLong = Array.isArray(holder) && holder.length > maxProperties;
    const keys = isLong ? [] : Reflect.ownKeys(holder);
    if (isLong || keys.length > maxProperties) this.#tables.add(holder);
    if (keys.length > maxProperties) return [];
    return keys.filter((key) => key !== 'prototype').map((key) => valueOf(holder, key));
  }
}

/** The values of private statics of a class. */
function privatesOf(fn: AnyFunction, { privateStatics, writtenPrivates }: Code): Seen {
  if (privateStatics.length === 0) return nothing;
  const held = inspectSelf().privateStatics(fn);
  return {
    values: privateStatics.map((name) => held.get(name)),
    isSettled: !privateStatics.some((name) => writtenPrivates.has(name)),
  };
}

function mayBecomeKeeper(value: unknown): boolean {
  return value === undefined || typeof value === 'object' || typeof value === 'symbol';
}

function isKeeper(value: unknown): value is Keeper {
  return typeof value === 'symbol' || isCollection(value);
}

function isWeak(keeper: Keeper): boolean {
  return types.isWeakMap(keeper) || types.isWeakSet(keeper);
}

function isCollection(value: unknown): value is object {
  return (
    types.isWeakMap(value) || types.isWeakSet(value) || types.isMap(value) || types.isSet(value)
  );
}

/** True: an object or function of the user that is not only data. */
function isOpen(value: unknown): value is object {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false;
  if (types.isProxy(value) || ArrayBuffer.isView(value)) return false;
  return builtinPath(value) === undefined && nodeModulePath(value) === undefined;
}

function valueOf(holder: object, key: string | symbol): unknown {
  try {
    return descriptorOf(holder, key)?.value;
  } catch {
    return undefined; // an export whose declaration has not run
  }
}

/** The way in which `keeper` keeps `value`; `undefined`: it does not. */
export function keptIn(keeper: Keeper, value: object): string | undefined {
  if (typeof keeper === 'symbol') {
    const isShared = Symbol.keyFor(keeper) !== undefined || isWellKnown(keeper);
    return !isShared && Object.hasOwn(value, keeper) ? 'under a symbol of its own' : undefined;
  }
  if (types.isWeakMap(keeper)) {
    return WeakMap.prototype.has.call(keeper, value) ? 'in a WeakMap' : undefined;
  }
  if (types.isWeakSet(keeper)) {
    return WeakSet.prototype.has.call(keeper, value) ? 'in a WeakSet' : undefined;
  }
  if (types.isMap(keeper)) return Map.prototype.has.call(keeper, value) ? 'in a Map' : undefined;
  if (types.isSet(keeper)) return Set.prototype.has.call(keeper, value) ? 'in a Set' : undefined;
  return undefined;
}

function isWellKnown(symbol: symbol): boolean {
  return descriptorsOf(Symbol).some(([, { value }]) => value === symbol);
}
