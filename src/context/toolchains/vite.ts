// The imports of a module that Vite compiled for Node, as Vitest and vite-node run it: each is a variable
// with a name of Vite's, and mostly a Proxy.
// Not here: names of files (vite-files.ts).

import { isBuiltin } from 'node:module';
import { pathToFileURL } from 'node:url';
import * as types from 'node:util/types';
import { canInspect, inspectSelf } from '../closures/inspector.js';
import type { Script } from '../modules/scripts.js';
import type { AnyFunction } from '../types.js';
import { loadNodeModule } from '../values/intrinsics.js';
import type { Path } from '../values/refuse.js';
import { partOf, refuseRunner, travelling, usedMembers } from './toolchains.js';
import { fileOfVite } from './vite-files.js';

const viteMeta = '__vite_ssr_import_meta__';
const viteName = /^__(?:vite_ssr|vi)_import_(?:\d+|meta)__$/;

/** True: Vite gave `name` to the result of an import statement, or to `import.meta`. */
export function isViteImport(name: string): boolean {
  return viteName.test(name);
}

/** The form in which an import of Vite travels: as a module that a worker imports, or as an object. */
export type ViteImport = { readonly specifier: string } | { readonly value: unknown };

/**
 * The replacement for `name`, a variable that Vite made, in a function with this `text`. Packages and modules
 * of Node are imported again. Modules of the user were compiled by Vite and travel by value, with the exports
 * that the function uses. Refuses values of the runner.
 */
export function viteImport(
  name: string,
  value: unknown,
  text: string,
  script: Script,
  path: Path,
): ViteImport {
  if (typeof value !== 'object' || value === null) return { value };
  const used = usedMembers(text, name) ?? Object.keys(value);
  if (name === viteMeta) return { value: metaOf(value, used, path) };
  const source = sourceOfVite(name, script.source ?? '');
  if (/(?:^|\/node_modules\/)@?vitest\//.test(`${source}/`)) {
    refuseRunner(`${used[0] ?? 'an export'} of Vitest`, path);
  }
  const specifier = specifierOf(source, script.url);
  if (specifier !== undefined && isNamespace(value, used, specifier)) return { specifier };
  return { value: partOf(value, used) };
}

/** The global through which Vitest 4 reads `import.meta.env`. */
const vitestWorker = '__vitest_worker__';
const envOfWorker = /^\??\.metaEnv\b/;

/**
 * The replacement for a variable or global in a function of a test. For the worker of Vitest it is the
 * worker's `import.meta.env`; for that itself its present contents. Any other value is as it is.
 */
export function ofVitest(name: string | symbol, value: unknown, text: string): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (types.isProxy(value)) return behind(value) === process.env ? { ...value } : value;
  if (name !== vitestWorker || !('metaEnv' in value)) return value;
  const isOfEnv = text
    .split(vitestWorker)
    .every((after, at) => at === 0 || envOfWorker.test(after));
  return isOfEnv ? partOf(value, ['metaEnv']) : value;
}

/** `import.meta` with the members that a function uses: our own functions in place of those of Vite. */
function metaOf(value: object, used: readonly string[], path: Path): object {
  const shown = used.filter((name) => name !== 'resolve' && name !== 'vitest');
  const meta = partOf(value, shown);
  if (!used.includes('vitest') && !used.includes('resolve')) return meta;
  if (used.includes('vitest') && Reflect.get(value, 'vitest') !== undefined) {
    refuseRunner('import.meta.vitest', path);
  }
  if (used.includes('resolve') && 'resolve' in value) {
    resolver ??= travelling(resolveText);
    Reflect.set(meta, 'resolve', resolver.bind(undefined, Reflect.get(value, 'url')));
  }
  return meta;
}

let resolver: AnyFunction | undefined;

const resolveText = `function resolve(url, specifier) {
  if (/^\\.{0,2}\\//.test(specifier)) return new URL(specifier, url).href;
  if (URL.canParse(specifier)) return specifier;
  const { createRequire, isBuiltin } = process.getBuiltinModule('node:module');
  if (isBuiltin(specifier)) return 'node:' + specifier;
  const { pathToFileURL } = process.getBuiltinModule('node:url');
  return pathToFileURL(createRequire(url).resolve(specifier)).href;
}`;

/** The specifier in `const name = await __vite_ssr_import__("specifier", …)`. */
export function sourceOfVite(name: string, source: string): string {
  const [, double, single] =
    new RegExp(`\\bconst ${name} = await [\\w$]+\\((?:"([^"\\\\]*)"|'([^'\\\\]*)')`).exec(source) ??
    [];
  return double ?? single ?? '';
}

/** The specifier that a worker imports for it; `undefined`: a module of the user, which Vite compiled. */
function specifierOf(source: string, url: string): string | undefined {
  if (source === '') return undefined;
  if (isBuiltin(source)) return source;
  const file = fileOfVite(source, url);
  if (file === undefined) return /^[.\\/]|:/.test(source) ? undefined : source;
  return file.includes('/node_modules/') ? pathToFileURL(file).href : undefined;
}

/** True: a worker that imports `specifier` finds the same values under these names. */
function isNamespace(value: object, used: readonly string[], specifier: string): boolean {
  const target = isBuiltin(specifier) ? loadNodeModule(specifier) : behind(value);
  if (typeof target !== 'object' && typeof target !== 'function') return false;
  if (target === null) return false;
  return used.every((name) => {
    const there = isBuiltin(specifier) && name === 'default' ? target : Reflect.get(target, name);
    return Object.is(there, Reflect.get(value, name));
  });
}

/** The namespace behind the Proxy by which Vite adds exports that Node does not find. */
function behind(value: object): unknown {
  if (!types.isProxy(value)) return value;
  return canInspect() ? inspectSelf().proxyTarget(value) : undefined;
}
