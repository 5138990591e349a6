// `require` functions: the folder from which each resolves.
// Not here: resolving.

import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { descriptorOf } from '../../lib/index.js';
import type { AnyFunction } from '../types.js';

const require = createRequire(import.meta.url);

/** True: it has the properties that Node, or a runner, gives each `require`. */
export function isRequire(fn: AnyFunction): boolean {
  return 'resolve' in fn && 'cache' in fn && 'extensions' in fn;
}

/** True: Node made `fn`, for a module or by `createRequire`. */
export function isRequireOfNode(fn: AnyFunction): boolean {
  return descriptorOf(fn, 'cache')?.value === require.cache && isRequire(fn);
}

/** The URL with which `createRequire` resolves as `fn` does: `usual`, where that is in the same folder. */
export function baseOfRequire(fn: AnyFunction, usual: string): string {
  const folder = folderOf(fn);
  const isUsual = folder === undefined || dirname(fileURLToPath(usual)) === folder;
  return isUsual ? usual : pathToFileURL(`${folder}/`).href;
}

/** The folder in which a relative name is resolved. */
function folderOf(fn: AnyFunction): string | undefined {
  const paths: unknown = Reflect.get(Object(Reflect.get(fn, 'resolve')), 'paths');
  const found: unknown =
    typeof paths === 'function' ? Reflect.apply(paths, undefined, ['./x']) : [];
  const [folder]: unknown[] = Array.isArray(found) ? found : [];
  return typeof folder === 'string' && folder.startsWith('/') ? folder : undefined;
}
