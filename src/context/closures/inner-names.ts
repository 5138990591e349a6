// Classes and symbols that a module of the user has and does not export. An instance must belong to the class
// of the module in the worker, or `instanceof` inside of the module fails. The symbols of its keys must be
// those there, too. Such a value is named by an export whose code sees it, and by the variable for it: V8
// shows the variable on both sides.
// Not here: classes that are exported (references.ts). Those of the program, and of modules that act when
// they are loaded, are copied.

import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { CodedError } from '../../errors.js';
import { isDeclarative, isProgram } from '../modules/program.js';
import { exportsByName, type ModuleReference } from '../modules/references.js';
import { bindingAt, type Place } from '../modules/scripts.js';
import { isConstant, runsOnce } from '../text/scope.js';
import { isLoadedByNode } from '../toolchains/jest.js';
import type { AnyFunction } from '../types.js';
import { canInspect, inspectSelf } from './inspector.js';
import { variablesIn } from './scopes.js';

const require = createRequire(import.meta.url);

/** Exports that are searched: reading one costs 0.1 ms. */
const maxExports = 16;

type Export = readonly [name: string, fn: AnyFunction];

/** The name of the class `fn`, which was written at `place`; `undefined`: it has none. */
export function innerClass(
  fn: AnyFunction,
  place: Place,
  placeOf: (fn: AnyFunction) => Place | undefined,
): ModuleReference | undefined {
  const { url, isCommonJs, analysis } = place.script;
  if (place.start < 0 || !url.startsWith('file:')) return undefined;
  if (isProgram(url) || !isDeclarative(url)) return undefined;
  const exports = isCommonJs
    ? exportsOfFile(fileURLToPath(url))
    : exportsAround(fn, place).filter(isExport);
  for (const [name, user] of exports.slice(0, maxExports)) {
    const placeOfUser = placeOf(user);
    if (placeOfUser?.script !== place.script) continue;
    const variable = [...variablesOf(user)].find(([, value]) => value === fn)?.[0];
    const binding = variable === undefined ? undefined : bindingAt(placeOfUser, variable);
    if (binding === undefined || !isConstant(binding)) continue;
    // A variable of a factory differs in each of its calls.
    if (!analysis || !runsOnce(binding.scope, analysis)) continue;
    const specifier = isCommonJs ? fileURLToPath(url) : url;
    return { specifier, name, isRequired: isCommonJs, variable };
  }
  return undefined;
}

function exportsOfFile(file: string): Export[] {
  const module = require.cache[file];
  if (module?.loaded !== true || !isLoadedByNode(file)) return [];
  const { exports } = module;
  if ((typeof exports !== 'object' && typeof exports !== 'function') || exports === null) return [];
  return [['*', exports] as const, ...exportsByName(exports)].filter(isExport);
}

/** Exports of an ES module that code in it sees: its namespace is not available here. */
export function exportsAround(
  fn: AnyFunction,
  { script }: Place,
): (readonly [name: string, value: unknown])[] {
  const { name: nameInStacks, analysis } = script;
  // A loader runs modules as scripts of its own.
  if (!/^file:/.test(nameInStacks) || analysis === undefined) return [];
  const { scopes, ofScripts } = inspectSelf().capture(fn);
  const root = scopes.findLast((scope) => scope !== ofScripts);
  if (root === undefined) return [];
  // A scope around the class may hide the name of an export.
  const variables = new Map(variablesIn(root));
  return analysis.exports
    .filter(({ local = '' }) => {
      const binding = analysis.root.bindings.get(local);
      return binding !== undefined && isConstant(binding);
    })
    .map(({ name, local = '' }) => [name, variables.get(local)]);
}

function isExport(entry: readonly [name: string, value: unknown]): entry is Export {
  return typeof entry[1] === 'function';
}

/**
 * The symbols that code of the class `owner`, which was written at `place`, sees, by their constant
 * variables.
 */
export function innerSymbols(
  owner: AnyFunction,
  place: Place | undefined,
): (readonly [variable: string, symbol: symbol])[] {
  return [...variablesOf(owner)].filter((entry): entry is [string, symbol] => {
    const [variable, value] = entry;
    const binding = place && typeof value === 'symbol' ? bindingAt(place, variable) : undefined;
    return binding !== undefined && isConstant(binding);
  });
}

/** The variables that the code of `fn` sees; without those that have no value yet. */
function variablesOf(fn: AnyFunction): Map<string, unknown> {
  return new Map(inspectSelf().capture(fn).scopes.toReversed().flatMap(variablesIn));
}

/**
 * The value that `exported`, an export of an imported module, sees as `path`. Throws
 * `TRANSFER_IMPORT_FAILED`.
 */
export function seenBy(exported: unknown, path: string): unknown {
  let found = exported;
  for (const variable of path.split(' ')) {
    const user = found;
    found = undefined;
    if (typeof user === 'function' && canInspect()) found = variablesOf(user).get(variable);
  }
  if (typeof found === 'function' || typeof found === 'symbol') return found;
  throw new CodedError(
    'TRANSFER_IMPORT_FAILED',
    `a module that was imported in the worker has no ${path} there: let it export the classes and symbols of its instances`,
  );
}
