// Modules in a bundle that webpack made for development, with names of its own. In a bundle for production
// its parts have other names, and travel as any other value.

import type { AnyFunction } from '../types.js';
import { partOf, travelling, usedMembers } from './toolchains.js';

/**
 * The replacement for `value`, a variable `name` that webpack made, in a function with this `text`: without
 * the modules and exports that the function does not name. Returned unchanged where it is none of webpack's.
 */
export function ofWebpack(name: string, value: unknown, text: string): unknown {
  if (typeof value === 'function') {
    return name === '__webpack_require__' ? requireOf(value, text) : value;
  }
  if (typeof value !== 'object' || value === null) return value;
  if (!/__WEBPACK_IMPORTED_MODULE_\d+__$/.test(name)) return value;
  return partOf(value, usedMembers(text, name) ?? Object.getOwnPropertyNames(value));
}

const dynamicImport =
  /__webpack_require__(?:\.bind\(__webpack_require__, |\()(?:\/\*! [^*]*\*\/ )?("[^"\\]*"|\d+)\)/g;

/** For `import()` of a module in the bundle; a function that does more with it gets the real one. */
function requireOf(require: AnyFunction, text: string): unknown {
  const modules: Record<string, unknown> = {};
  for (const [, id = ''] of text.matchAll(dynamicImport)) {
    const key: unknown = JSON.parse(id);
    const exports: unknown = Reflect.apply(require, undefined, [key]);
    const isObject = typeof exports === 'object' && exports !== null;
    modules[String(key)] = isObject
      ? partOf(exports, Object.getOwnPropertyNames(exports))
      : exports;
  }
  if (text.replaceAll(dynamicImport, '').includes('__webpack_require__')) return require;
  pick ??= travelling('function __webpack_require__(modules, id) { return modules[id]; }');
  return pick.bind(undefined, modules);
}

let pick: AnyFunction | undefined;
