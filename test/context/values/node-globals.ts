// Globals that a test runner puts into each context of node:vm.

import vm from 'node:vm';

/** The globals of Node that Jest gives each context, by what is missing there. */
export function nodeGlobals(): Record<string, unknown> {
  const ofLanguage = new Set<unknown>(vm.runInNewContext('Object.getOwnPropertyNames(globalThis)'));
  const names = Object.getOwnPropertyNames(globalThis).filter((name) => !ofLanguage.has(name));
  return Object.fromEntries(names.map((name) => [name, Reflect.get(globalThis, name)]));
}
