// `import.meta` of a module that does not run here, for code of it in a worker. `resolve` is Node's own,
// redirected to another module by a hook. Before Node 22.15 there are no such hooks: `require` resolves
// instead, and specifiers that may be another file for `import` are refused.

import * as nodeModule from 'node:module';
import { dirname } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { CodedError } from '../../errors.js';
import { descriptorsOf, jsonOf } from '../../lib/index.js';
import type { AnyFunction } from '../types.js';
import { packageTextAround } from './package-text.js';
import { isEntry } from './program.js';

declare global {
  interface ImportMeta {
    /** From Node 22.18 and 24.2 on. */
    readonly main?: boolean;
  }
}

const metas = new Map<string, object>();
const urls = new WeakMap<object, string>();

/** `import.meta` of the module at `url`, one object a URL. */
export function metaFor(url: string): object {
  const known = metas.get(url);
  if (known !== undefined) return known;
  const path = url.startsWith('file:') ? fileURLToPath(url) : undefined;
  const meta = {
    __proto__: null,
    ...(path !== undefined && {
      dirname: path.slice(0, path.lastIndexOf('/')) || '/',
      filename: path,
    }),
    ...(import.meta.main !== undefined && { main: isEntry(url) }),
    resolve: (specifier: unknown): string => resolveFrom(url, `${specifier}`),
    url,
  };
  metas.set(url, meta);
  urls.set(meta, url);
  return meta;
}

const registerHooks: unknown = Reflect.get(nodeModule, 'registerHooks');

type Resolve = (specifier: string, context: object) => object;

let lastAsked = 0;

/** Resolves as `import.meta.resolve(specifier)` does in the module at `url`, with the same errors. */
function resolveFrom(url: string, specifier: string): string {
  if (typeof registerHooks !== 'function') return resolveAsRequired(url, specifier);
  lastAsked += 1;
  const asked = `manycore:${lastAsked}`; // a new name each time: Node may cache the result
  const resolve = (name: string, context: object, next: Resolve): object =>
    name === asked
      ? { ...next(specifier, { ...context, parentURL: url }), shortCircuit: true }
      : next(name, context);
  const hooks: unknown = Reflect.apply(registerHooks, undefined, [{ resolve }]);
  try {
    return import.meta.resolve(asked);
  } finally {
    if (typeof hooks === 'object' && hooks !== null && 'deregister' in hooks) {
      if (typeof hooks.deregister === 'function') hooks.deregister();
    }
  }
}

function resolveAsRequired(url: string, specifier: string): string {
  if (/^\.{0,2}(?:\/|$)/.test(specifier) && specifier !== '') return new URL(specifier, url).href;
  if (URL.canParse(specifier)) return new URL(specifier).href;
  if (nodeModule.isBuiltin(specifier)) return `node:${specifier}`;
  let found: string | undefined;
  try {
    found = nodeModule.createRequire(url).resolve(specifier);
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'MODULE_NOT_FOUND') {
      throw notFound(specifier, url);
    }
  }
  if (found === undefined || isOfTwoBuilds(found)) {
    throw new CodedError(
      'TRANSFER_UNSUPPORTED',
      `import.meta.resolve(${jsonOf(specifier)}) may be another file in a worker before Node 22.15: call it ` +
        'outside of the function, which captures the URL',
    );
  }
  return pathToFileURL(found).href;
}

function notFound(specifier: string, url: string): Error {
  const from = url.startsWith('file:') ? fileURLToPath(url) : url;
  const error = new Error(`Cannot find package '${specifier}' imported from ${from}`);
  return Object.assign(error, { code: 'ERR_MODULE_NOT_FOUND' });
}

/** True: the package of `file` names other files for `import` than for `require`. */
function isOfTwoBuilds(file: string): boolean {
  return /"(?:import|require|module-sync)"\s*:/.test(packageTextAround(dirname(file)) ?? '');
}

/** The URL of the module whose `import.meta` is `value`, Node's own or one that a worker made. */
export function urlOfMeta(
  value: object,
  isOfNode: (fn: AnyFunction) => boolean,
): string | undefined {
  const known = urls.get(value);
  if (known !== undefined) return known;
  if (Object.getPrototypeOf(value) !== null) return undefined;
  const own = new Map(descriptorsOf(value).map(([key, { value: held }]) => [key, held]));
  const [url, resolve] = [own.get('url'), own.get('resolve')];
  if (typeof url !== 'string' || typeof resolve !== 'function') return undefined;
  const isBare = [...own.keys()].every((key) => ownKeys.has(key));
  return isBare && isOfNode(resolve) ? url : undefined;
}

const ownKeys = new Set(['dirname', 'filename', 'main', 'resolve', 'url']);
