// Modules that a loader compiled and keeps in a table of its own, as Jest does with CommonJS. A worker that
// required their file would get another program, or none. They travel by value.

import { isBuiltin } from 'node:module';
import * as types from 'node:util/types';
import { isMainRealm } from '../../lib/index.js';
import type { AnyFunction } from '../types.js';
import { loadNodeModule } from '../values/intrinsics.js';
import { partOf, travelling, usedMembers } from './toolchains.js';

/** True: a worker that requires `file` gets the module that runs here. Jest does not transform packages. */
export function isLoadedByNode(file: string): boolean {
  const cache = cacheOfNode();
  if (typeof cache !== 'object' || cache === null || file in cache) return true;
  return /[\\/]node_modules[\\/]/.test(file);
}

/** The value of `require.cache` in Node's own modules. */
function cacheOfNode(): unknown {
  return Reflect.get(Object(loadNodeModule('node:module')), '_cache');
}

/**
 * True: a loader in a context of node:vm made `value` of a CommonJS module, with a name for each property.
 */
export function isOpenedDefault(value: unknown): boolean {
  if (isMainRealm || !types.isModuleNamespaceObject(value)) return false;
  const namespace = Object(value);
  const whole: unknown = namespace.default;
  if (typeof whole !== 'function' && (typeof whole !== 'object' || whole === null)) return false;
  return Object.keys(whole).every(
    (key) => key in namespace && Object.is(namespace[key], Reflect.get(whole, key)),
  );
}

let pick: AnyFunction | undefined;

/** The objects that modules of such a loader export. */
const foreign = new WeakSet<object>();

export function rememberForeignModule(exports: object): void {
  foreign.add(exports);
}

/** The replacement for `value`, a variable `name` of a function with this `text`. */
export function ofForeignModule(name: string, value: unknown, text: string): unknown {
  if (typeof value !== 'object' || value === null || !foreign.has(value)) return value;
  return partOf(value, usedMembers(text, name) ?? Object.getOwnPropertyNames(value));
}

interface Require extends AnyFunction {
  (specifier: string): unknown;
  resolve(specifier: string): string;
}

/** True: `value` is the `require` of such a loader. */
export function isForeignRequire(value: unknown): value is Require {
  if (types.isProxy(value)) return false;
  if (typeof value !== 'function' || !('resolve' in value && 'cache' in value)) return false;
  return 'extensions' in value && value.cache !== cacheOfNode();
}

/**
 * The replacement for the `require` of such a loader in a function that requires modules of the user. It
 * holds these modules, because no worker can compile them. `undefined`: it is another value, or the function
 * requires none.
 */
export function foreignRequire(value: unknown, text: string, url: string): unknown {
  if (!isForeignRequire(value)) return undefined;
  const modules: Record<string, unknown> = {};
  for (const [, specifier = ''] of text.matchAll(/\brequire\(["']([^"'\\]+)["']\)/g)) {
    if (isBuiltin(specifier) || !isForeignFile(value, specifier)) continue;
    const exports = value(specifier);
    const isObject = typeof exports === 'object' && exports !== null;
    modules[specifier] = isObject ? partOf(exports, Object.getOwnPropertyNames(exports)) : exports;
  }
  if (Object.keys(modules).length === 0) return undefined;
  pick ??= travelling(pickText);
  return pick.bind(undefined, modules, url);
}

function isForeignFile(require: Require, specifier: string): boolean {
  try {
    return !isLoadedByNode(require.resolve(specifier));
  } catch {
    return false; // it is not there: the function gets that error in the worker
  }
}

const pickText = `function require(modules, url, specifier) {
  if (Object.hasOwn(modules, specifier)) return modules[specifier];
  return process.getBuiltinModule('node:module').createRequire(url)(specifier);
}`;
