// Output of test runners and compilers, where it differs from the program that Node would load. The names
// below are written by the tools, not by users.
// Not here: Vite (vite.ts), modules that Jest loads (jest.ts).

import * as types from 'node:util/types';
import vm from 'node:vm';
import { defineOwn, descriptorOf, functionName, sourceText } from '../../lib/index.js';
import type { AnyFunction } from '../types.js';
import { mockWayOut, type Path, transferError } from '../values/refuse.js';

/** The members of `name` that a text uses; `undefined`: all, or those of a name made later. */
export function usedMembers(text: string, name: string): string[] | undefined {
  const used = new Set<string>();
  for (const [, member] of text.matchAll(
    new RegExp(`(?<![\\w$.])${name.replaceAll('$', '\\$')}(?![\\w$])(?:\\.([\\w$]+))?`, 'g'),
  )) {
    if (member === undefined) return undefined;
    used.add(member);
  }
  return [...used];
}

/**
 * An object with some properties of `value`, as they are; for a Proxy in one of them the object that it
 * shows.
 */
export function partOf(value: object, names: readonly string[]): object {
  const part = {};
  for (const name of names) {
    const descriptor = descriptorOf(value, name);
    if (types.isProxy(value) || types.isProxy(descriptor?.value)) {
      const shown: unknown = Reflect.get(value, name);
      Reflect.set(part, name, types.isProxy(shown) ? Object.assign({}, shown) : shown);
    } else if (descriptor !== undefined) {
      defineOwn(part, name, descriptor);
    }
  }
  return part;
}

/** Refuses values that a test runner gives its tests: they work only in the process of the test. */
export function refuseRunner(what: string, path: Path): never {
  throw transferError(
    'TRANSFER_UNSUPPORTED',
    path,
    `it uses ${what}, which works only where the test runs: return the value and check it there, ` +
      'or use node:assert inside',
  );
}

/** The `expect` of Jest, which is a global. */
export function isExpect(fn: AnyFunction): boolean {
  return functionName(fn) === 'expect' && 'hasAssertions' in fn && 'extend' in fn;
}

/** Refuses a mock function of Vitest or Jest: it counts its calls in a table of the runner. */
export function refuseMock(fn: AnyFunction, path: Path): void {
  if (!('_isMockFunction' in fn)) return;
  throw transferError(
    'TRANSFER_UNSUPPORTED',
    path,
    `it is a mock function of a test runner, whose calls are counted in this process: ${mockWayOut}`,
  );
}

/** True: `value` holds the compiled form of `#private` members of a class, for a target before ES2022. */
export function isLoweredPrivate(value: unknown, text: string): boolean {
  if (!types.isWeakMap(value) && !types.isWeakSet(value)) return false;
  return /__classPrivate|__private(?:Add|Get|Set|In|Method)|_class_?private_?|_check_?private_?/i.test(
    text,
  );
}

/** `text` is that of the class, `source` that of its script. */
export function refuseLowered(name: string, text: string, source: string, path: Path): never {
  const what = name === '' ? 'a class' : name;
  const wayOut = isDecorated(name, text, source)
    ? 'esbuild and tsx write them so in a class with a decorator, for every target: drop the decorator, use ' +
      '`private` of TypeScript instead of #, or put the class into a module of its own and import that'
    : 'compile for ES2022 or later (the target of TypeScript, esbuild, swc or Babel), or import the ' +
      'class inside the function';
  throw transferError(
    'TRANSFER_UNSUPPORTED',
    path,
    `a compiler keeps the #private members of ${what} in it, which a copy cannot hold: ${wayOut}`,
  );
}

/** True: esbuild has written a decorator of the class, or of a member, into it or behind it. */
function isDecorated(name: string, text: string, source: string): boolean {
  if (text.includes('__runInitializers')) return true;
  const escaped = name.replaceAll('$', '\\$');
  return new RegExp(
    `(?<![\\w$])${escaped} ?= ?__decorateClass|__decorateElement\\(\\w+, ?\\d+, ?"${escaped}"`,
  ).test(source);
}

/** A function that travels as its text, in a script of its own: parsing ours would take long. */
export function travelling(text: string): AnyFunction {
  return Object(vm.runInThisContext(`(${text})`));
}

let wildcard: AnyFunction | undefined;
let star: AnyFunction | undefined;

/**
 * A helper of Babel and swc caches in a WeakMap the namespace of each CommonJS module; that of TypeScript
 * caches which function lists keys. A helper that does the same from its text alone travels in its place;
 * other functions are as they are.
 */
export function withoutState(fn: AnyFunction): AnyFunction {
  if (functionName(fn) === '' && fn.length === 1 && starPattern.test(sourceText(fn))) {
    star ??= travelling(starText);
    return star;
  }
  if (!/^_?interop_?require_?wildcard$/i.test(functionName(fn))) return fn;
  wildcard ??= travelling(wildcardText);
  return wildcard;
}

/** Output of TypeScript 5.7 and later for `import * as` in CommonJS: the rest of it calls helpers. */
const starPattern =
  /^function \(mod\) \{\s*if \(mod && mod\.__esModule\) return mod;\s*var result = \{\};[^{}]*\bownKeys\(mod\)/;

const starText = `function (mod) {
  if (mod && mod.__esModule) return mod;
  const result = {};
  for (const key of mod == null ? [] : Object.getOwnPropertyNames(mod)) {
    if (key === 'default') continue;
    const own = { __proto__: null, ...Object.getOwnPropertyDescriptor(mod, key) };
    const isOwn = !('get' in own ? !mod.__esModule : own.writable || own.configurable);
    Object.defineProperty(result, key, isOwn ? own : { __proto__: null, enumerable: true, get: () => mod[key] });
  }
  Object.defineProperty(result, 'default', { __proto__: null, enumerable: true, value: mod });
  return result;
}`;

const wildcardText = `function _interopRequireWildcard(exports, isOfNode) {
  if (!isOfNode && exports && exports.__esModule) return exports;
  if (exports === null || (typeof exports !== 'object' && typeof exports !== 'function')) {
    return { default: exports };
  }
  const known = (_interopRequireWildcard.known ??= new WeakMap());
  if (known.has(exports)) return known.get(exports);
  const made = { __proto__: null };
  for (const key in exports) {
    if (key === 'default' || !Object.hasOwn(exports, key)) continue;
    const own = Object.getOwnPropertyDescriptor(exports, key);
    Object.defineProperty(made, key, { __proto__: null, ...own });
  }
  made.default = exports;
  known.set(exports, made);
  return made;
}`;
