// Modules that flags of Node load before the program (`--import`, `-r`): which of them are a part of it,
// because they start tasks while they load.
// Not here: the flags themselves (worker/parent/flags.ts).

import { realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { fileText } from './file-text.js';
import { evaluatedAt, usesManycore } from './own-modules.js';
import { packageTextAround, packageTextIn } from './package-text.js';
import { isProgram } from './program.js';
import { isOurs } from './resolve-module.js';

/**
 * True: the module that `name` means at the start of Node starts tasks while it loads, or leads to one that
 * does.
 */
export function isProgramPreload(name: string): boolean {
  return modulesNamed(name).some(
    (url) => isProgram(url) || (url.includes('/node_modules/') && isStarterOfPackage(url)),
  );
}

/** The URLs that `name` may mean; `[]`: a module of Node, or a missing one, which Node itself reports. */
function modulesNamed(name: string): string[] {
  if (name.startsWith('data:')) return [name];
  if (/^\w[\w+.-]+:/.test(name) && !name.startsWith('file:')) return [];
  const folder = pathToFileURL(`${process.cwd()}/`);
  if (!/^(?:file:|\/|\.{1,2}(?:\/|$))/.test(name)) return modulesOfPackage(name);
  // `--import` reads a URL, `-r` a path that may leave the extension out.
  const paths = [fileURLToPath(new URL(name, folder))];
  if (!name.startsWith('file:')) paths.push(resolve(name));
  return paths.flatMap((path) => found(() => createRequire(folder).resolve(path)));
}

/** The module of a package for `require`, and all that it may have for `import`. */
function modulesOfPackage(name: string): string[] {
  const require = createRequire(`${process.cwd()}/`);
  const [, packageName = '', rest = ''] = /^((?:@[^/]+\/)?[^/]+)(.*)$/.exec(name) ?? [];
  const folders = (require.resolve.paths(name) ?? []).map((each) => join(each, packageName));
  const folder = folders.find((each) => packageTextIn(each) !== undefined);
  const text = folder === undefined ? undefined : packageTextIn(folder);
  const targets = targetsOf(text ?? '', `.${rest}`).map((each) => join(folder ?? '', each));
  return [
    ...found(() => require.resolve(name)),
    ...targets.flatMap((each) => found(() => realpathSync(each))),
  ];
}

/** All files that the field `exports` has for `path`, under any conditions. */
function targetsOf(text: string, path: string): string[] {
  let exports: unknown;
  try {
    exports = Object(JSON.parse(text)).exports;
  } catch {
    return [];
  }
  const isOfPaths = Object.keys(Object(exports)).some((key) => key.startsWith('.'));
  if (!isOfPaths && path !== '.') return [];
  return textsIn(isOfPaths ? Object(exports)[path] : exports);
}

function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return Object.values(Object(value)).flatMap(textsIn);
}

function found(find: () => string): string[] {
  try {
    return [pathToFileURL(find()).href];
  } catch {
    return [];
  }
}

/** By URL, because each start of a worker needs it. */
const starters = new Map<string, boolean>();

/** True: the package's module at `url` acts while it loads, and it or a file that it loads starts tasks. */
function isStarterOfPackage(url: string): boolean {
  const isStarter = starters.get(url) ?? startsTasks(url);
  starters.set(url, isStarter);
  return isStarter;
}

function startsTasks(url: string): boolean {
  if (isOurs(url) || !mentionsManycore(url)) return false;
  const seen = new Set([url]);
  for (const each of seen) {
    for (const loaded of evaluatedAt(each)?.loads ?? []) {
      if (!/^\.{1,2}\//.test(loaded)) continue;
      for (const file of found(() => createRequire(each).resolve(loaded))) seen.add(file);
    }
  }
  const files = [...seen];
  return files.some(usesManycore) && files.some((each) => evaluatedAt(each)?.acts === true);
}

/** True: it or its `package.json` names this library. Others have many files, which need not be parsed. */
function mentionsManycore(url: string): boolean {
  if (fileText(url)?.includes('manycore') === true) return true;
  return packageTextAround(dirname(fileURLToPath(url)))?.includes('manycore') === true;
}
