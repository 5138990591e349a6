// Imports the modules that a function of a peer imported: Node's modules at once, CommonJS by require. The
// rest is loaded by import() as the user's own module would do it, with its conditions and its loaders.

import { createRequire, isBuiltin } from 'node:module';
import { CodedError } from '../../errors.js';
import { messageOf } from '../../lib/index.js';
import { importVersion, LoadedVersions } from '../modules/code-version.js';
import { type ModuleDefinition, namespaceType, parseDefinition } from '../protocol.js';
import type { Exporter } from '../types.js';
import { loadNodeModule } from '../values/intrinsics.js';
import { format, read, write } from '../wire.js';
import { importerFor } from './recreate.js';

/** Gives an export of a loaded module; `*`: the module itself. */
export type Exports = (name: string) => unknown;

const require = createRequire(import.meta.url);

/** Loads a module; a promise when that takes time. Fails with `TRANSFER_IMPORT_FAILED`. */
export function loadModule(definition: ModuleDefinition): Exports | Promise<Exports> {
  const { specifier, parent, isRequired, importType } = definition;
  checkVersion(definition);
  try {
    if (isBuiltin(specifier)) {
      const name = specifier.startsWith('node:') ? specifier : `node:${specifier}`;
      if (importType === namespaceType) return import(name).then(exportsOf);
      return exportsOfNode(loadNodeModule(name), isRequired);
    }
    if (isRequired) return exportsOf(require(specifier));
    const importer = importerFor(parent === '' ? specifier : parent);
    const options = importType === '' ? undefined : { with: { type: importType } };
    return importer(specifier, options).then(exportsOfImport, (cause) => {
      throw failed(definition, cause);
    });
  } catch (cause) {
    throw failed(definition, cause);
  }
}

/** Versions of modules that were sent to other machines, by specifier and parent. */
const sent = new Map<string, string | undefined>();
const loaded = new LoadedVersions();

/** Throws `TRANSFER_VERSION_DIFFERS` before code runs that its sender does not have. */
function checkVersion({ specifier, parent, version }: ModuleDefinition): void {
  if (version === undefined) return;
  const own = importVersion(specifier, parent) ?? version; // a missing file fails when it is imported
  const isSame = own === version;
  if (isSame && loaded.add([{ specifier, parent, version }])) return;
  const from = parent === '' ? '' : ` (imported by ${parent})`;
  const here = isSame ? 'this worker has loaded an older one' : `here it is ${own}`;
  const way = isSame ? 'start the worker again' : 'put the same files on both machines';
  const text = `${specifier}${from} has version ${version} where the function comes from, and ${here}: ${way}`;
  throw new CodedError('TRANSFER_VERSION_DIFFERS', text);
}

/** Returns the bytes of a definition for a peer on another machine: modules have their versions. */
export function withVersion(bytes: Uint8Array): Uint8Array {
  const definition = moduleIn(bytes);
  if (definition === undefined) return bytes;
  const { specifier, parent } = definition;
  const key = `${specifier} ${parent}`;
  // The version that this program has loaded, also when the file is edited later.
  if (!sent.has(key)) sent.set(key, importVersion(specifier, parent));
  const version = sent.get(key);
  return write(format.definition, { ...definition, version }, undefined).bytes;
}

function exportsOf(namespace: unknown): Exports {
  return (name) => {
    if (name === '*') return namespace;
    const isObject = typeof namespace === 'object' && namespace !== null;
    return isObject || typeof namespace === 'function' ? Reflect.get(namespace, name) : undefined;
  };
}

/**
 * A module whose default export holds all its exports: the form that loaders of test runners give CommonJS.
 */
export const openedDefault = '*default';

/**
 * Node finds the names of a CommonJS module in its text; a loader of a test runner names each property. A
 * name imported there that is missing here is a property of the default export.
 */
function exportsOfImport(namespace: unknown): Exports {
  const named = exportsOf(namespace);
  let opened: object | undefined;
  return (name) => {
    const isNamed = name === '*' || name === 'default' || name in Object(namespace);
    const whole = isNamed ? undefined : named('default');
    if (whole === undefined || whole === null) return named(name);
    if (name !== openedDefault) return Reflect.get(Object(whole), name);
    opened ??= Object.freeze({ __proto__: null, ...whole, default: whole });
    return opened;
  };
}

function exportsOfNode(value: unknown, isRequired: boolean): Exports {
  const exports = exportsOf(value);
  return isRequired ? exports : (name) => (name === 'default' ? value : exports(name));
}

let remedy =
  'a worker imports again what a function imported, so the module must load there as well';

/** Sets the end of the message for a module that does not load in this worker. */
export function setImportRemedy(text: string): void {
  remedy = text;
}

function failed({ specifier, parent }: ModuleDefinition, cause: unknown): CodedError {
  const from = parent === '' ? '' : ` (imported by ${parent})`;
  return new CodedError(
    'TRANSFER_IMPORT_FAILED',
    `${specifier}${from} cannot be imported in the worker: ${messageOf(cause)}; ${remedy}`,
    { cause },
  );
}

/** The module that a definition loads; `undefined`: it is none, or there is none. */
export function moduleDefinition(exporter: Exporter, id: number): ModuleDefinition | undefined {
  try {
    const definition = parseDefinition(read(exporter.definition(id), undefined).value);
    return definition.kind === 'module' ? definition : undefined;
  } catch {
    return undefined; // the number comes from the peer
  }
}

/** The module that these bytes of a definition load; `undefined`: it is none. */
export function moduleIn(bytes: Uint8Array): ModuleDefinition | undefined {
  const definition = parseDefinition(read(bytes, undefined).value);
  return definition.kind === 'module' ? definition : undefined;
}

/** The specifier of that module. */
export function moduleOf(exporter: Exporter, id: number): string | undefined {
  return moduleDefinition(exporter, id)?.specifier;
}
