// Keys of the global object as code and messages show them.
// Not here: keys in the text of a function (global-keys.ts).

import { jsonOf } from '../../lib/index.js';

/** An expression for `key`: `"config"`, `Symbol.for("app")`. */
export function keyExpression(key: string | symbol): string {
  return typeof key === 'symbol' ? `Symbol.for(${jsonOf(key.description ?? '')})` : jsonOf(key);
}

/** A global in messages: `global config`, `globalThis[Symbol.for("app")]`. */
export function shownGlobal(key: string | symbol): string {
  return typeof key === 'string' && isVariableName(key) ? `global ${key}` : shownMember(key);
}

/** `globalThis.config` */
export function shownMember(key: string | symbol): string {
  if (typeof key === 'string' && isVariableName(key)) return `globalThis.${key}`;
  const hasName = typeof key === 'string' || Symbol.keyFor(key) !== undefined;
  return `globalThis[${hasName ? keyExpression(key) : String(key)}]`;
}

export function isVariableName(name: string): boolean {
  return /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u.test(name);
}
