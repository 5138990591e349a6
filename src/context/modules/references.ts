// Values that belong to a module of the user and so are imported again on the other side, never copied.
// CommonJS modules and their exports are found by identity in the require cache; functions, classes and
// namespaces of ES modules by their place in the source. Values that the program itself defines travel by
// value (program.ts).
// Not here: Node's own modules (intrinsics.ts).

import { createRequire } from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';
import * as types from 'node:util/types';
import {
  descriptorOf,
  descriptorsOf,
  type OwnDescriptor,
  ownValue,
  sourceText,
  withoutWarnings,
} from '../../lib/index.js';
import { inspectSelf } from '../closures/inspector.js';
import { isConstant } from '../text/scope.js';
import { isLoadedByNode, rememberForeignModule } from '../toolchains/jest.js';
import type { AnyFunction } from '../types.js';
import { copiedFrom } from './copied-exports.js';
import { isDeclarative, isProgram } from './program.js';
import { relativeUrl } from './resolve-module.js';
import { analysisOf, type Place, type Script } from './scripts.js';

export interface ModuleReference {
  readonly specifier: string;
  readonly name: string;
  readonly isRequired: boolean;
  /**
   * A variable that the code of the export sees, whose value is used instead of the export; a space leads one
   * step further.
   */
  readonly variable?: string | undefined;
}

const require = createRequire(import.meta.url);

/**
 * The modules that are each value or export it by name, in the order in which they began to load. The entry
 * of a package comes first, as its inner modules may need its effects.
 */
let cjsTable = new Map<object | symbol, ModuleReference[]>();
let modulesSeen = -1;
/** The module that was loaded last: one may be deleted from the cache and loaded again. */
let lastSeen: unknown;

/** The CommonJS module whose export `value` is. */
export function cjsModule(value: object): ModuleReference | undefined {
  return cjsReference(value, ({ name }) => name === '*');
}

/** The same, or the module that exports the function `value` by name, if `isMeant` accepts it. */
export function cjsReference(
  value: object | symbol,
  isMeant: (reference: ModuleReference) => boolean = () => true,
): ModuleReference | undefined {
  const found = currentTable()
    .get(value)
    ?.filter((reference) => isMeant(reference) && !isProgram(urlOf(reference)));
  return found?.[0] && mostComplete(found[0], found);
}

/**
 * One object may be the export of several modules: `module.exports = require('./core')`, with more added. The
 * module that requires the others has it complete. So has the module of a package that exports a class of an
 * inner one.
 */
function mostComplete(first: ModuleReference, all: readonly ModuleReference[]): ModuleReference {
  let best = first;
  for (const other of all) {
    const isAlike = other.name === best.name || packageOf(other) === packageOf(best);
    if (other === best || !isAlike || (other.name !== '*' && packageOf(other) === undefined))
      continue;
    if (requires(other, best) && !requires(best, other)) best = other;
  }
  return best;
}

/** The folder of the installed package that the module belongs to. */
function packageOf({ specifier }: ModuleReference): string | undefined {
  return /^.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+/.exec(specifier)?.[0];
}

function requires(user: ModuleReference, used: ModuleReference): boolean {
  const seen = new Set<string>();
  const waiting = [user.specifier];
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    for (const { filename } of require.cache[file]?.children ?? []) {
      if (filename === used.specifier) return true;
      if (!seen.has(filename)) waiting.push(filename);
      seen.add(filename);
    }
  }
  return false;
}

function urlOf({ specifier }: ModuleReference): string {
  return pathToFileURL(specifier).href;
}

function currentTable(): typeof cjsTable {
  const files = Object.keys(require.cache);
  const last = require.cache[files.at(-1) ?? ''];
  if (files.length === modulesSeen && last === lastSeen) return cjsTable;
  lastSeen = last;
  cjsTable = new Map();
  usersGetters = new Set();
  let areLoaded = true;
  const loaded: (readonly [file: string, exports: object])[] = [];
  for (const file of files) {
    const module = require.cache[file];
    if (module?.loaded !== true && module !== process.mainModule) areLoaded = false;
    // A getter in place of the exports may make others at each read.
    const exports: unknown = module && ownValue(module, 'exports');
    if (isReference(exports)) loaded.push([file, exports]);
  }
  for (const [, exports] of loaded) noteGetters(exports);
  for (const [file, exports] of loaded) addCjs(file, exports);
  modulesSeen = areLoaded ? files.length : -1; // one that still loads may export more
  return cjsTable;
}

function addCjs(file: string, exports: object): void {
  if (!isLoadedByNode(file)) {
    rememberForeignModule(exports);
    return;
  }
  remember(exports, file, '*');
  for (const [name, value] of exportsByName(exports)) {
    const isNamed = typeof value === 'function' && name !== 'constructor';
    if (isNamed || isSentinel(value)) remember(value, file, name);
  }
}

/** True: code may compare it, and it does not change. */
function isSentinel(value: unknown): value is object | symbol {
  if (typeof value === 'symbol') return Symbol.keyFor(value) === undefined;
  const isObject = typeof value === 'object' && value !== null && !types.isProxy(value);
  return isObject && Object.isFrozen(value);
}

/** The CommonJS module that exports `value`, a symbol or frozen object, by name. */
export function sentinelOfCjs(value: object | symbol): ModuleReference | undefined {
  const isMeant = (reference: ModuleReference): boolean =>
    reference.name !== '*' && isDeclarative(urlOf(reference));
  return isSentinel(value) ? cjsReference(value, isMeant) : undefined;
}

function remember(value: object | symbol, specifier: string, name: string): void {
  const known = cjsTable.get(value) ?? [];
  cjsTable.set(value, known);
  known.push({ specifier, name, isRequired: true });
}

/** Names of getters that users wrote on the exports of a module: reading exports must never run one. */
let usersGetters = new Set<string>();

function noteGetters(exports: object): void {
  for (const [name, { get }] of ownProperties(exports)) {
    const isUsers = get !== undefined && !isNaming(get) && !copiedFrom(exports, name, get);
    if (isUsers) usersGetters.add(name);
  }
}

/** Empty for a Proxy, whose handler is code of the user. */
function ownProperties(exports: object): [string, OwnDescriptor][] {
  return types.isProxy(exports) ? [] : descriptorsOf(exports);
}

/** The value of each property of `exports`, without those that only code of the user could return. */
export function exportsByName(exports: object): (readonly [name: string, value: unknown])[] {
  return ownProperties(exports).map(([name, descriptor]) => [
    name,
    exported(exports, name, descriptor),
  ]);
}

/** `() => name`, `function () { return name.member; }` */
const namingGetter =
  /^(?:get\b[^(]*|function\s*\w*\s*|)\(\)\s*(?:=>\s*|\{\s*return\s+)([\w$]+)((?:\.[\w$]+)*);?\s*\}?$/;
/** Variables of compilers for required modules: `name_1`, `_name`, `import_name`, those of webpack. */
const compilersVariable = /^(?:[\w$]+_\d+|_[\w$]+|import_[\w$]+|[\w$]*__WEBPACK_\w+)$/;

/** True: `get` names a variable, or an export of a module by a compiler's variable. */
function isNaming(get: () => unknown): boolean {
  const [, variable = '', members = ''] = matchGetter(get);
  return variable !== '' && (members === '' || compilersVariable.test(variable));
}

function matchGetter(get: () => unknown): readonly string[] {
  return namingGetter.exec(sourceText(get)) ?? [];
}

/** Calls a getter only when a compiler wrote it: a getter of the user may throw, or have an effect. */
function exported(
  exports: object,
  name: string,
  { value, get, enumerable, configurable }: OwnDescriptor,
): unknown {
  if (get === undefined) return value;
  const source = copiedFrom(exports, name, get);
  const there = source && descriptorOf(source, name);
  if (source !== undefined && there !== undefined) return exported(source, name, there);
  if (!isNaming(get)) return undefined;
  const [, , members = ''] = matchGetter(get);
  // Compilers define the exports of other modules as non-configurable.
  const isDefined = enumerable === true && configurable === false;
  if (members !== '' && !isDefined) return undefined;
  if (members.split('.').some((member) => usersGetters.has(member))) return undefined;
  try {
    return Reflect.get(exports, name);
  } catch {
    return undefined; // the declaration of the variable has not run
  }
}

function isReference(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function';
}

/**
 * The `this` at the top of a CommonJS file: the `exports` that it began with. `undefined` when the file may
 * have assigned `module.exports`, which is then all that remains.
 */
export function cjsThis({ url, source }: Script): { readonly value: unknown } | undefined {
  if (source === undefined || !url.startsWith('file:')) return undefined;
  if (/\bmodule\s*(?:\.\s*exports|\[[^\]]*\])\s*=[^=]/.test(source)) return undefined;
  const module = require.cache[fileURLToPath(url)];
  return module && { value: module.exports };
}

/** The export of its module that is `fn`, a function or class of a CommonJS module. */
export function cjsExport(fn: AnyFunction, isClass: boolean): ModuleReference | undefined {
  return cjsReference(fn, (reference) => isClass || isDeclarative(urlOf(reference)));
}

/** The export of an ES module that is the function or class at `place`. */
export function exportAt(place: Place, isClass: boolean): ModuleReference | undefined {
  const { script, start } = place;
  const { analysis, url, name: nameInStacks } = script;
  if (analysis === undefined || start < 0 || script.isCommonJs || isProgram(url)) return undefined;
  // A loader that runs modules as scripts of its own names them by their path.
  if (!/^(?:file|data):/.test(nameInStacks)) return undefined;
  if (!isClass && !isDeclarative(url)) return undefined;
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

/**
 * The ES module whose namespace `namespace` is. Either it defines a function that it exports, or `user`, the
 * script of a function that holds the namespace, imports it. `undefined`: not found, or of the program.
 */
export function namespaceReference(
  namespace: object,
  user: Script | undefined,
  placeOfFunction: (fn: AnyFunction) => Place | undefined,
): ModuleReference | undefined {
  const wrapped = wrappedModule(namespace);
  if (wrapped !== undefined) return wrapped;
  const urls = new Set<string>();
  for (const [, { value }] of descriptorsOf(namespace)) {
    const url = typeof value === 'function' && placeOfFunction(value)?.script.url;
    if (url) urls.add(url);
  }
  for (const source of user?.analysis?.sources ?? []) {
    const url = relativeUrl(source, user?.url);
    if (url !== undefined) urls.add(url);
  }
  for (const url of urls) {
    if (url.startsWith('file:') && isNamespaceOf(namespace, url)) {
      return isProgram(url) ? undefined : { specifier: url, name: '*', isRequired: false };
    }
  }
  return moduleOfPackage(namespace, urls);
}

/** The CommonJS module for which `import` gives `namespace`. */
function wrappedModule(namespace: object): ModuleReference | undefined {
  const exports: unknown = ownValue(namespace, 'default');
  const module = isReference(exports) ? cjsModule(exports) : undefined;
  if (module === undefined || !isReference(exports)) return undefined;
  const members = new Map([
    ...exportsByName(exports),
    ['default', exports],
    ['module.exports', exports],
  ]);
  const isWrapped = Object.keys(namespace).every(
    (name) => members.has(name) && Object.is(members.get(name), Reflect.get(namespace, name)),
  );
  return isWrapped ? { specifier: urlOf(module), name: '*', isRequired: false } : undefined;
}

/** Results for namespaces stay valid: their modules have run. */
const found = new WeakMap<object, ModuleReference | 'none'>();

/**
 * The module whose namespace `namespace` is, among those that ran of the packages which define its functions.
 */
function moduleOfPackage(namespace: object, urls: Iterable<string>): ModuleReference | undefined {
  const known = found.get(namespace);
  if (known !== undefined) return known === 'none' ? undefined : known;
  const roots = [...urls].flatMap((url) => packagePattern.exec(url)?.[0] ?? []);
  const scripts = roots.length === 0 ? [] : inspectSelf().scriptUrls().values();
  for (const url of scripts) {
    if (!roots.some((root) => url.startsWith(root)) || requiredAt(url) !== namespace) continue;
    const reference = { specifier: url, name: '*', isRequired: false };
    found.set(namespace, reference);
    return reference;
  }
  found.set(namespace, 'none');
  return undefined;
}

/** A package's folder, up to its last `/`. */
const packagePattern = /^file:.*\/node_modules\/(?:@[^/]+\/)?[^/]+\//;

/** The result of `require` for a module that has run; `undefined`: it awaits while it loads. */
function requiredAt(url: string): unknown {
  try {
    return withoutWarnings((): unknown => require(fileURLToPath(url)));
  } catch {
    return undefined;
  }
}

function isNamespaceOf(namespace: object, url: string): boolean {
  const analysis = analysisOf(url);
  if (analysis === undefined || !analysis.hasModuleSyntax) return false;
  const names = Object.keys(namespace);
  const exports = new Set(analysis.exports.map(({ name }) => name));
  if (names.some((name) => !exports.has(name))) return false;
  let required: unknown;
  try {
    required = withoutWarnings((): unknown => require(fileURLToPath(url)));
  } catch {
    return names.length === exports.size; // it awaits while it loads
  }
  // A module with a default export comes behind an object of the same properties.
  return names.every((name) =>
    Object.is(Reflect.get(Object(required), name), Reflect.get(namespace, name)),
  );
}

/** True: an object with code, which is no table of data that a module happens to be. */
export function hasCode(value: object): boolean {
  if (typeof value === 'function') return true;
  return descriptorsOf(value).some(
    ([, { value: member, get }]) => typeof member === 'function' || get !== undefined,
  );
}
