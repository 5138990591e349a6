// Names for values that every process has: built-in globals, their prototypes and methods, and the members of
// Node's loaded modules. Such values travel by name, never by copy. A global that the user added is none of
// these: most additions are enumerable, and built-ins are not. A hidden one is the program's when Node has
// none of that name, or when its function is written in the program.
// Not here: exports of the user's modules (references.ts).

import { builtinModules, createRequire, isBuiltin } from 'node:module';
import vm from 'node:vm';
import { CodedError } from '../../errors.js';
import { descriptorOf, functionName, ownValue, sourceText } from '../../lib/index.js';
import { guardGlobals } from '../closures/global-guard.js';
import { sendingHalf } from '../late.js';
import type { AnyFunction } from '../types.js';
import { internalError, internalErrors } from './internal-errors.js';

type Path = readonly (string | symbol)[];

/** Built-in globals that are enumerable, beside `gc` of V8, which `--expose-gc` brings. */
const enumerableGlobals = new Set(
  (
    'global clearImmediate setImmediate clearInterval clearTimeout setInterval setTimeout ' +
    'queueMicrotask structuredClone atob btoa performance fetch navigator crypto'
  ).split(' '),
);

/** Hidden globals of Node 20 to 26. Others are judged by their value, which costs more. */
const hiddenGlobals = new Set(
  (
    'AbortController AbortSignal AggregateError Array ArrayBuffer AsyncDisposableStack ' +
    'Atomics BigInt BigInt64Array BigUint64Array Blob Boolean BroadcastChannel Buffer ' +
    'ByteLengthQueuingStrategy CloseEvent CompressionStream CountQueuingStrategy Crypto ' +
    'CryptoKey CustomEvent DOMException DataView Date DecompressionStream ' +
    'DisposableStack Error ErrorEvent EvalError Event EventSource EventTarget File ' +
    'FinalizationRegistry Float16Array Float32Array Float64Array FormData Function ' +
    'Headers Infinity Int16Array Int32Array Int8Array Intl Iterator JSON Map Math ' +
    'MessageChannel MessageEvent MessagePort NaN Navigator Number Object Performance ' +
    'PerformanceEntry PerformanceMark PerformanceMeasure PerformanceObserver ' +
    'PerformanceObserverEntryList PerformanceResourceTiming Promise Proxy ' +
    'QuotaExceededError RangeError ReadableByteStreamController ReadableStream ' +
    'ReadableStreamBYOBReader ReadableStreamBYOBRequest ReadableStreamDefaultController ' +
    'ReadableStreamDefaultReader ReferenceError Reflect RegExp Request Response Set ' +
    'SharedArrayBuffer Storage String SubtleCrypto SuppressedError Symbol SyntaxError ' +
    'Temporal TextDecoder TextDecoderStream TextEncoder TextEncoderStream ' +
    'TransformStream TransformStreamDefaultController TypeError URIError URL URLPattern ' +
    'URLSearchParams Uint16Array Uint32Array Uint8Array Uint8ClampedArray WeakMap ' +
    'WeakRef WeakSet WebAssembly WebSocket WritableStream ' +
    'WritableStreamDefaultController WritableStreamDefaultWriter console decodeURI ' +
    'decodeURIComponent encodeURI encodeURIComponent escape eval globalThis isFinite ' +
    'isNaN localStorage parseFloat parseInt process sessionStorage undefined unescape'
  ).split(' '),
);

/** Reading these warns, or loads much: tried by name when a value claims to be one (`byName`). */
const getterGlobals = new Set(['process', 'Buffer', 'crypto', 'performance', 'navigator']);

/** Globals of modules that the first read of one loads, by these modules. Read only once they are loaded. */
const lateGlobals: ReadonlyMap<string, readonly string[]> = new Map(
  [
    // An HTTP client.
    [
      'NativeModule internal/deps/undici/undici',
      'CloseEvent ErrorEvent EventSource FormData Headers MessageEvent Request Response WebSocket',
    ],
    [
      'NativeModule internal/webstreams/readablestream',
      'ReadableByteStreamController ReadableStream ReadableStreamBYOBReader ReadableStreamBYOBRequest ' +
        'ReadableStreamDefaultController ReadableStreamDefaultReader',
    ],
    [
      'NativeModule internal/webstreams/writablestream',
      'WritableStream WritableStreamDefaultController WritableStreamDefaultWriter',
    ],
    [
      'NativeModule internal/webstreams/transformstream',
      'TransformStream TransformStreamDefaultController',
    ],
    [
      'NativeModule internal/webstreams/queuingstrategies',
      'ByteLengthQueuingStrategy CountQueuingStrategy',
    ],
    ['NativeModule internal/webstreams/encoding', 'TextDecoderStream TextEncoderStream'],
    ['NativeModule internal/webstreams/compression', 'CompressionStream DecompressionStream'],
  ].map(([module = '', names = '']) => [module, names.split(' ')]),
);
const allLateGlobals = new Set([...lateGlobals.values()].flat());

/** Not reachable from a global by data properties alone; `@` starts such a path. */
const hidden: Readonly<Record<string, () => unknown>> = {
  CodedError: () => CodedError,
  ThrowTypeError: () => descriptorOf(argumentsOf(), 'callee')?.get,
  guardGlobals: () => guardGlobals,
  TypedArray: () => Object.getPrototypeOf(Uint8Array),
  Generator: () => Object.getPrototypeOf(function* () {}),
  AsyncGenerator: () => Object.getPrototypeOf(async function* () {}),
  AsyncFunction: () => Object.getPrototypeOf(async () => {}).constructor,
  AsyncFunctionPrototype: () => Object.getPrototypeOf(async () => {}),
  GeneratorFunction: () => Object.getPrototypeOf(function* () {}).constructor,
  AsyncGeneratorFunction: () => Object.getPrototypeOf(async function* () {}).constructor,
  ArrayIterator: () => Object.getPrototypeOf([][Symbol.iterator]()),
  MapIterator: () => Object.getPrototypeOf(new Map()[Symbol.iterator]()),
  SetIterator: () => Object.getPrototypeOf(new Set()[Symbol.iterator]()),
  StringIterator: () => Object.getPrototypeOf(''[Symbol.iterator]()),
  Iterator: () => Object.getPrototypeOf(Object.getPrototypeOf([][Symbol.iterator]())),
};

/** The arguments object of a strict function, which holds %ThrowTypeError%. */
function argumentsOf(): object {
  // biome-ignore lint/complexity/noArguments: the object itself is wanted
  return arguments;
}

let table: Map<unknown, Path> | undefined;
/** Lengths of the list of loaded modules, when it was last read. */
let modulesSeen = -1;
let lateSeen = -1;
/** Modules whose globals are not in the table. */
const waiting = new Map(lateGlobals);

/** The path that names `value` in every process; `undefined`: it is not built in. */
export function builtinPath(value: unknown): Path | undefined {
  const known = globalsHere().get(value);
  if (known !== undefined) {
    const isAdded = typeof value === 'function' && known.length > 1 && isOfProgram(value);
    return isAdded ? undefined : known;
  }
  if (typeof value === 'function') {
    const name = functionName(value);
    const named = byName(name);
    if (named !== undefined && named === value) return [name];
    const isInternal = name === 'AbortError' || name === 'SystemError' || name === 'onceWrapper';
    if (isInternal && internalErrors[name]() === value) return [`@${name}`];
  }
  return undefined;
}

const verdicts = new WeakMap<AnyFunction, boolean>();

/** True: the program added this member to a built-in object, as a polyfill does. */
function isOfProgram(fn: AnyFunction): boolean {
  const known = verdicts.get(fn);
  if (known !== undefined) return known;
  const isNative = /\{\s*\[native code\]\s*\}\s*$/.test(sourceText(fn));
  const url = isNative ? undefined : sendingHalf().scriptOf(fn);
  const isProgram = url !== undefined && !url.startsWith('node:');
  verdicts.set(fn, isProgram);
  return isProgram;
}

const streamNames = ['stdin', 'stdout', 'stderr'];

/**
 * The path of `process.stdin`, `.stdout` or `.stderr`. Only the one with the same descriptor is made for it.
 */
export function standardStreamPath(value: object): Path | undefined {
  const fd: unknown = ownValue(value, 'fd');
  const name = typeof fd === 'number' ? streamNames[fd] : undefined;
  if (name === undefined || Reflect.get(process, name) !== value) return undefined;
  return ['process', name];
}

/** The same for the modules of Node and their exports. */
export function nodeModulePath(value: unknown): Path | undefined {
  const known = globalsHere();
  addNodeModules(known);
  return known.get(value);
}

/** The name of the Node module whose namespace `namespace` is. Runs no getter of it. */
export function nodeNamespace(namespace: object): string | undefined {
  const exported: unknown = descriptorOf(namespace, 'default')?.value;
  const [first, ...rest] = isReference(exported) ? (nodeModulePath(exported) ?? []) : [];
  if (typeof first !== 'string' || rest.length > 0 || !isReference(exported)) return undefined;
  const name = first.startsWith('node:') ? first : `node:${first}`;
  if (!isBuiltin(name) || loadNodeModule(name) !== exported) return undefined;
  const names = new Set(Object.keys(namespace));
  const keys = new Set([...Object.keys(exported), 'default', 'module.exports']);
  const isWhole = [...names].every((key) => keys.has(key));
  return isWhole && Object.keys(exported).every((key) => names.has(key)) ? name : undefined;
}

/** The value that a path names here. Throws a plain error when it names nothing. */
export function followPath(path: Path): unknown {
  const [first, ...rest] = path;
  let value: unknown = rootOf(String(first));
  for (const key of rest) {
    if ((typeof value !== 'object' && typeof value !== 'function') || value === null) {
      throw new Error(`${path.map(String).join('.')} is not here`);
    }
    const descriptor = typeof key === 'string' && key.startsWith('get ') ? key.slice(4) : undefined;
    value =
      descriptor === undefined ? Reflect.get(value, key) : descriptorOf(value, descriptor)?.get;
  }
  if (value === undefined) throw new Error(`${path.map(String).join('.')} is not here`);
  return value;
}

function rootOf(name: string): unknown {
  if (name.startsWith('@')) return hidden[name.slice(1)]?.() ?? internalError(name.slice(1));
  if (name.startsWith('node:')) return loadNodeModule(name);
  if (name === 'globalThis') return globalThis;
  return isBuiltinGlobal(name) ? Reflect.get(globalThis, name) : undefined;
}

/** Globals of a prompt and of `node -e`, which no program has. */
const promptGlobals = new Set('require module exports __filename __dirname _ _error'.split(' '));
const moduleNames = new Set(builtinModules);

/** True: `globalThis[name]` is a module of Node, as at a prompt and under `node -e`. */
export function isPromptModule(name: string): boolean {
  if (hiddenGlobals.has(name) || !moduleNames.has(name)) return false;
  return descriptorOf(globalThis, name)?.enumerable === false;
}

let globalOfNode: object | undefined;

/** True: `globalThis[name]` is Node's or the language's, not the program's. */
export function isBuiltinGlobal(name: string): boolean {
  // Not ours in a context of node:vm, where a test runner has added the globals of Node.
  const main: object = globalOfNode ?? Object(vm.runInThisContext('globalThis'));
  globalOfNode = main;
  const descriptor = descriptorOf(main, name);
  if (descriptor === undefined || !(name in globalThis)) return false;
  if (descriptor.enumerable === true && name !== 'gc') return enumerableGlobals.has(name);
  if (promptGlobals.has(name)) return false;
  if (hiddenGlobals.has(name) || moduleNames.has(name)) return true;
  const value: unknown = descriptor.get ?? descriptor.value;
  return typeof value === 'function' && !isOfProgram(value);
}

function byName(name: string): unknown {
  const descriptor = name === '' ? undefined : descriptorOf(globalThis, name);
  if (descriptor === undefined || !isBuiltinGlobal(name)) return undefined;
  return 'value' in descriptor ? descriptor.value : undefined;
}

function globalsHere(): Map<unknown, Path> {
  table ??= globalTable();
  if (waiting.size > 0) addLateGlobals(table);
  return table;
}

function addLateGlobals(found: Map<unknown, Path>): void {
  const loaded = loadedModules();
  if (loaded?.length === lateSeen) return;
  lateSeen = loaded?.length ?? 0; // what is loaded below is new at the next call
  const modules = new Set(loaded ?? waiting.keys());
  for (const [module, names] of waiting) {
    if (!modules.has(module)) continue;
    waiting.delete(module);
    addGlobals(found, names);
  }
}

/** Node's internal modules that are loaded, as `NativeModule fs`. */
function loadedModules(): readonly unknown[] | undefined {
  const list: unknown = Reflect.get(process, 'moduleLoadList');
  return Array.isArray(list) ? list : undefined;
}

function globalTable(): Map<unknown, Path> {
  const found = new Map<unknown, Path>([[globalThis, ['globalThis']]]);
  const names = Object.getOwnPropertyNames(globalThis);
  addGlobals(
    found,
    names.filter((name) => !allLateGlobals.has(name)),
  );
  for (const [name, read] of Object.entries(hidden)) {
    const value = read();
    if (isReference(value)) add(found, value, [`@${name}`], 1);
  }
  return found;
}

function addGlobals(found: Map<unknown, Path>, names: Iterable<string>): void {
  for (const name of names) {
    const descriptor = descriptorOf(globalThis, name);
    if (descriptor === undefined || !isBuiltinGlobal(name)) continue;
    // In Node 20 late globals have getters until their first read.
    const isRead = getterGlobals.has(name) || allLateGlobals.has(name);
    const value: unknown = isRead ? Reflect.get(globalThis, name) : descriptor.value;
    if (isReference(value) && value !== globalThis) add(found, value, [name], 2);
  }
}

function isReference(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function';
}

/** Adds `value` and the values of its data properties and accessors, `depth` levels down. */
function add(found: Map<unknown, Path>, value: object, path: Path, depth: number): void {
  if (found.has(value)) return;
  found.set(value, path);
  if (depth === 0) return;
  for (const key of Reflect.ownKeys(value)) {
    const descriptor = descriptorOf(value, key);
    if (descriptor === undefined || key === 'constructor') continue;
    if (path[0] === 'process' && key === 'env') {
      found.set(descriptor.value, ['process', 'env']);
      continue;
    }
    if (isReference(descriptor.value)) {
      // Objects that hold the program's data are not names: process.argv may be copied.
      const isName = typeof descriptor.value === 'function' || path[0] !== 'process';
      const isPrototype = key === 'prototype';
      if (isName || isPrototype)
        add(found, descriptor.value, [...path, key], isPrototype ? 1 : depth - 1);
    }
    if (descriptor.get !== undefined && typeof key === 'string') {
      if (!found.has(descriptor.get)) found.set(descriptor.get, [...path, `get ${key}`]);
    }
  }
}

function addNodeModules(found: Map<unknown, Path>): void {
  const loaded = loadedModules() ?? [];
  if (loaded.length === modulesSeen) return;
  const names = new Set(loaded.map((entry: unknown) => String(entry).replace(/^\S+ /, '')));
  for (const name of builtinModules) {
    if (name.startsWith('_') || !names.has(name.replace(/^node:/, ''))) continue;
    const specifier = name.startsWith('node:') ? name : `node:${name}`;
    const value: unknown = loadNodeModule(specifier);
    if (isReference(value)) add(found, value, [specifier], 2);
  }
  modulesSeen = loadedModules()?.length ?? 0;
}

const require = createRequire(import.meta.url);

export function loadNodeModule(specifier: string): unknown {
  const get: unknown = Reflect.get(process, 'getBuiltinModule');
  if (typeof get === 'function') return Reflect.apply(get, process, [specifier]);
  return require(specifier);
}
