// Globals that the program added: by string keys and by symbols.
// Not here: how Node's own are recognized (intrinsics.ts).

import { isBuiltinGlobal, isPromptModule } from './intrinsics.js';

/** Members of every object, which the global object has too. */
const ofObjects = new Set(
  (
    'constructor __proto__ __defineGetter__ __defineSetter__ __lookupGetter__ __lookupSetter__ ' +
    'hasOwnProperty isPrototypeOf propertyIsEnumerable toLocaleString toString valueOf undefined'
  ).split(' '),
);

/** Symbols of Node's own code and of ours: each process has its own values under them. */
const ownSymbol = /^(?:undici\.global|manycore\.)/;

/** True: the program, and not Node or the language, has put `key` there. */
export function isUserGlobal(key: string | symbol, global: object): boolean {
  if (!(key in global)) return false;
  if (typeof key === 'symbol') {
    const name = Symbol.keyFor(key);
    return name === undefined ? !isWellKnown(key) : !ownSymbol.test(name);
  }
  if (ofObjects.has(key)) return key !== 'undefined' && Object.hasOwn(global, key);
  return !isBuiltinGlobal(key) || isPromptModule(key);
}

function isWellKnown(key: symbol): boolean {
  const name = /^Symbol\.(\w+)$/.exec(key.description ?? '')?.[1];
  return name !== undefined && Reflect.get(Symbol, name) === key;
}

/** The keys of all that the program added. */
export function userGlobals(global: object): (string | symbol)[] {
  const keys = new Set<string | symbol>();
  for (let at: object | null = global; at !== null; at = Object.getPrototypeOf(at)) {
    for (const key of Reflect.ownKeys(at)) if (isUserGlobal(key, global)) keys.add(key);
  }
  return [...keys];
}
