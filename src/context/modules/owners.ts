// The variables and exports of modules that hold an object. A call may have an object of a module without a
// variable of that module: in `const box = { list }`, by `const { list } = require(…)`, from a function that
// returns it. The scopes around functions of the call, and around its imports, show which variables of
// modules hold the same object. They are read once for each script and import. So later values of a variable,
// or of a plain object or class in it, do not count. Collections are not searched.
// Not here: what an import leads to (reach.ts).

import { createRequire } from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';
import * as types from 'node:util/types';
import { ownValue } from '../../lib/index.js';
import { variablesIn } from '../closures/scopes.js';
import type { Analysis, Binding } from '../text/scope.js';
import type { AnyFunction } from '../types.js';
import { exportsIn } from '../values/sentinels.js';
import { isProgram } from './program.js';
import { changesLater, keyOf, keysOfExport, type Reached } from './reach.js';
import { cjsModule } from './references.js';
import { bareUrl, isOfUser, isOurs, urlOfModule } from './resolve-module.js';
import type { Script } from './scripts.js';

const require = createRequire(import.meta.url);

/** The scopes that the code of a function sees, innermost first. */
export interface Around {
  readonly script: Script;
  readonly scopes: readonly object[];
}

/** A variable of the module at `url`, or its export `name`; `*`: the module. */
export interface Owner {
  readonly url: string;
  readonly name: string;
  readonly binding: Binding | undefined;
}

/** Steps down in objects and classes that are searched. */
const maxSteps = 2;
const maxMembers = 200;
/** Functions of an imported object that are read: one costs 0.1 ms. */
const maxFunctions = 16;

const owners = new WeakMap<object, Owner[]>();
/** The number of readings by script or imported value. */
const readings = new WeakMap<object, number>();
/** A variable without a value gets one when its module has run; after so many readings it never does. */
const maxReadings = 3;

export function ownersOf(value: object): readonly Owner[] {
  return owners.get(value) ?? [];
}

/** True: code that reaches `reach` uses the value of `owner`. */
export function isOwnerIn(reach: Reached, { url, name, binding }: Owner): boolean {
  const keys = binding === undefined ? keysOfExport(url, name) : [keyOf(url, binding)];
  return keys.some((key) => reach.has(key));
}

/** Notes the values that the module of a function holds, and its imports. */
export function noteScript({ script, scopes }: Around): void {
  if (isRead(script) || !isOfUser(script.url)) return;
  countReading(script, noteScopes({ script, scopes }));
  if (!script.isCommonJs) return;
  for (const { filename, exports } of require.cache[fileURLToPath(script.url)]?.children ?? []) {
    const url = pathToFileURL(filename).href;
    if (isOfUser(url)) note(exports, { url, name: '*', binding: undefined });
  }
}

/** Notes the values that the code of `value` sees, the export `name` of the module at `url`. */
export function noteImport(
  value: unknown,
  url: string,
  name: string,
  around: (fn: AnyFunction) => Around | undefined,
): void {
  if (!isObject(value) || isRead(value) || types.isProxy(value)) return;
  let isComplete = true;
  const scripts = new Set<Script>();
  // The modules of this library hold no value of the program that a worker could take from there.
  const functions = isOurs(url) ? [] : functionsIn(value).slice(0, maxFunctions);
  for (const fn of functions) {
    const found = around(fn);
    if (found === undefined || scripts.has(found.script) || !isOfUser(found.script.url)) continue;
    scripts.add(found.script);
    isComplete = noteScopes(found) && isComplete;
  }
  note(value, { url, name, binding: undefined });
  countReading(value, isComplete);
}

function isRead(value: object): boolean {
  return (readings.get(value) ?? 0) >= maxReadings;
}

function countReading(value: object, isComplete: boolean): void {
  readings.set(value, isComplete ? maxReadings : (readings.get(value) ?? 0) + 1);
}

function functionsIn(value: object): AnyFunction[] {
  const members: unknown[] = [value, ...membersIn(value).map(([, member]) => member)];
  const prototype: object | null = Object.getPrototypeOf(value);
  if (prototype !== null) members.push(ownValue(prototype, 'constructor'));
  return members.filter((each) => typeof each === 'function');
}

/** False: a variable has no value yet. */
function noteScopes({ script, scopes }: Around): boolean {
  const { analysis } = script;
  if (analysis === undefined) return true;
  const url = bareUrl(script.url);
  const isOwn = !isProgram(url);
  let isComplete = true;
  for (const [name, value] of scopes.flatMap(variablesIn)) {
    for (const binding of bindingsNamed(analysis, name)) {
      // An instance in such a variable, as the last one that was made, is soon replaced.
      if (!isPlain(value) && changesLater(binding, analysis)) continue;
      if (value === undefined) isComplete = false;
      if (binding.kind === 'import') {
        const target = urlOfModule(binding.source ?? '', url);
        const imported = binding.imported ?? '*';
        if (target !== undefined) note(value, { url: target, name: imported, binding: undefined });
      } else if (isOwn) note(value, { url, name, binding });
    }
  }
  return isComplete;
}

const named = new WeakMap<Analysis, Map<string, Binding[]>>();

function bindingsNamed(analysis: Analysis, name: string): readonly Binding[] {
  let byName = named.get(analysis);
  if (byName === undefined) {
    byName = new Map<string, Binding[]>();
    for (const binding of analysis.scopes.flatMap(({ bindings }) => [...bindings.values()])) {
      const known = byName.get(binding.name);
      if (known === undefined) byName.set(binding.name, [binding]);
      else known.push(binding);
    }
    named.set(analysis, byName);
  }
  return byName.get(name) ?? [];
}

function note(value: unknown, owner: Owner, steps = 0): void {
  if (!isObject(value) || types.isProxy(value)) return;
  const known = owners.get(value) ?? [];
  if (known.some((each) => isSame(each, owner))) return;
  owners.set(value, [...known, owner]);
  const url = urlOfExports(value, owner);
  if (url !== undefined) {
    for (const [name, member] of membersIn(value)) note(member, { url, name, binding: undefined });
  } else if (steps < maxSteps && (typeof value === 'function' || isPlainObject(value))) {
    // A value with more members is a collection.
    for (const [, member] of membersIn(value).slice(0, maxMembers)) note(member, owner, steps + 1);
  }
}

function isSame(one: Owner, other: Owner): boolean {
  return one.url === other.url && one.name === other.name && one.binding === other.binding;
}

/** The module whose exports `value` is; `undefined`: it is none. */
function urlOfExports(value: object, { url, name }: Owner): string | undefined {
  if (types.isModuleNamespaceObject(value)) return name === '*' ? url : undefined;
  const module = cjsModule(value);
  return module && pathToFileURL(module.specifier).href;
}

/** A long array has a member for each element. */
function membersIn(value: object): (readonly [name: string, value: unknown])[] {
  return Array.isArray(value) || ArrayBuffer.isView(value) ? [] : [...exportsIn(value)];
}

function isPlainObject(value: object): boolean {
  const prototype: object | null = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
}

/** True: it is no instance of a class of the program. */
function isPlain(value: unknown): boolean {
  if (!isObject(value) || types.isProxy(value)) return false;
  return Array.isArray(value) || types.isMap(value) || types.isSet(value) || isPlainObject(value);
}

function isObject(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function';
}
