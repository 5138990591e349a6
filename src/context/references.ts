// Values that belong to a module of the user's and so are imported again on the other side, never
// copied: exports of CommonJS modules (found by identity in the require cache) and classes that an
// ES module exports (found by their place in its source). The main module is never imported again:
// what it defines travels by value. Not here: Node's own modules (intrinsics.ts).

import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { isProgram } from './program.js';
import { isConstant } from './scope.js';
import type { Place } from './scripts.js';

export interface ModuleReference {
  readonly specifier: string;
  readonly name: string;
  readonly isRequired: boolean;
}

const require = createRequire(import.meta.url);

let cjsTable = new WeakMap<object, ModuleReference>();
let modulesSeen = 0;

/** The CommonJS module that `value` is the export of, or a function that it exports. */
export function cjsReference(value: object): ModuleReference | undefined {
  const files = Object.keys(require.cache);
  if (files.length !== modulesSeen) {
    modulesSeen = files.length;
    cjsTable = new WeakMap();
    for (const file of files) addCjs(file, require.cache[file]?.exports);
  }
  return cjsTable.get(value);
}

function addCjs(file: string, exports: unknown): void {
  if (!isReference(exports) || isProgram(pathToFileURL(file).href)) return;
  remember(exports, file, '*');
  for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(exports))) {
    if (typeof value === 'function' && name !== 'constructor') remember(value, file, name);
  }
}

function remember(value: object, specifier: string, name: string): void {
  if (!cjsTable.has(value)) cjsTable.set(value, { specifier, name, isRequired: true });
}

function isReference(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function';
}

/** The export of an ES module that is the class at `place`. */
export function exportAt(place: Place): ModuleReference | undefined {
  const { script, start } = place;
  const { analysis, url } = script;
  if (analysis === undefined || start < 0 || script.isCommonJs || isProgram(url)) return undefined;
  if (!url.startsWith('file:') && !url.startsWith('data:')) return undefined;
  for (const { name, local, node } of analysis.exports) {
    const isNode = node?.start === start;
    const binding = local === undefined ? undefined : analysis.root.bindings.get(local);
    const isDeclared =
      binding !== undefined &&
      isConstant(binding) &&
      analysis.topLevel.get(binding.start) === start;
    if (isNode || isDeclared) return { specifier: url, name, isRequired: false };
  }
  return undefined;
}
