// The imports of a module that Vite compiled for Node, as Vitest and vite-node run it: each is a variable
// with a name of Vite's, and mostly a Proxy. Not here: names of files (vite-files.ts).

import { isBuiltin } from 'node:module';
import { pathToFileURL } from 'node:url';
import * as types from 'node:util/types';
import { canInspect, inspectSelf } from './inspector.js';
import { loadNodeModule } from './intrinsics.js';
import type { Path } from './refuse.js';
import type { Script } from './scripts.js';
import { partOf, refuseRunner, usedMembers } from './toolchains.js';
import { fileOfVite } from './vite-files.js';

const viteName = /^__(?:vite_ssr|vi)_import_(?:\d+|meta)__$/;

/** True: `name` is one that Vite gave to what an import statement brought, or to `import.meta`. */
export function isViteImport(name: string): boolean {
  return viteName.test(name);
}

/** How an import of Vite travels: as a module that a host imports, or as an object. */
export type ViteImport = { readonly specifier: string } | { readonly value: unknown };

/**
 * What `name`, a variable that Vite made, stands for in a function with this `text`. Packages and
 * modules of Node are imported again. Modules of the user were compiled by Vite and travel by value,
 * with the exports that the function uses. Refuses what belongs to the runner.
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
  const source = sourceOfVite(name, script.source ?? '');
  if (/(?:^|\/node_modules\/)@?vitest\//.test(`${source}/`)) {
    refuseRunner(`${used[0] ?? 'an export'} of Vitest`, path);
  }
  const specifier = specifierOf(source, script.url);
  if (specifier !== undefined && isNamespace(value, used, specifier)) return { specifier };
  return { value: partOf(value, used) };
}

/** The specifier in `const name = await __vite_ssr_import__("specifier", …)`. */
export function sourceOfVite(name: string, source: string): string {
  const [, double, single] =
    new RegExp(`\\bconst ${name} = await [\\w$]+\\((?:"([^"\\\\]*)"|'([^'\\\\]*)')`).exec(source) ??
    [];
  return double ?? single ?? '';
}

/** What a host imports for it; `undefined`: a module of the user, which Vite compiled. */
function specifierOf(source: string, url: string): string | undefined {
  if (source === '') return undefined;
  if (isBuiltin(source)) return source;
  const file = fileOfVite(source, url);
  if (file === undefined) return /^[.\\/]|:/.test(source) ? undefined : source;
  return file.includes('/node_modules/') ? pathToFileURL(file).href : undefined;
}

/** Whether a host that imports `specifier` finds under these names what is here. */
function isNamespace(value: object, used: readonly string[], specifier: string): boolean {
  const target = isBuiltin(specifier) ? loadNodeModule(specifier) : behind(value);
  if (typeof target !== 'object' && typeof target !== 'function') return false;
  if (target === null) return false;
  return used.every((name) => {
    const there = isBuiltin(specifier) && name === 'default' ? target : Reflect.get(target, name);
    return Object.is(there, Reflect.get(value, name));
  });
}

/** The namespace behind the Proxy with which Vite makes up for exports that Node does not find. */
function behind(value: object): unknown {
  if (!types.isProxy(value)) return value;
  return canInspect() ? inspectSelf().proxyTarget(value) : undefined;
}
