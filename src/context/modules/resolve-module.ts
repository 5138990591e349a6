// Resolves a specifier in a module to its file, and that file to its owner: the user, a package or this
// library. Packages neither import modules of the program nor start tasks of the user, so they are not
// followed. Most functions here resolve the specifier of a package to nothing.
// Not here: reading the file (scripts.ts, own-modules.ts).

import { createRequire } from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { packageTextAround, packageTextIn } from './package-text.js';

/** A URL without the query that makes Node load the file once more. */
export function bareUrl(url: string): string {
  return url.replace(/[?#].*/, '');
}

/** The folders of packages that are a part of the program. */
const packagesOfProgram = new Set<string>();

/**
 * Notes that the program is in the package around `url`, if that uses this library: runners of programs do
 * not.
 */
export function noteProgramPackage(url: string): void {
  const folder = packageAround(url);
  if (folder === undefined || packagesOfProgram.has(folder) || isOurs(url)) return;
  if (packageTextIn(fileURLToPath(folder))?.includes('manycore') !== true) return;
  packagesOfProgram.add(folder);
  targets.clear();
}

function packageAround(url: string): string | undefined {
  return /^file:.*\/node_modules\/(?:@[^/]+\/)?[^/]+\//.exec(url)?.[0];
}

/** True: a file of no package, or of one that is a part of the program. */
export function isOfUser(url: string): boolean {
  if (!url.startsWith('file:')) return false;
  return !url.includes('/node_modules/') || packagesOfProgram.has(packageAround(url) ?? '');
}

/** The folder of this library's modules: `dist/src/`, or that of the bundle. */
const ownFolder = new URL('../../', import.meta.url).href;

/** True: a module of the user, of no package and not of this library. */
export function isOwn(url: string): boolean {
  return (isOfUser(url) && !isOurs(url)) || url.startsWith('data:');
}

/** True: a module of this library. */
export function isOurs(url: string): boolean {
  // In a bundle of the user this file is one of theirs.
  return url.startsWith(ownFolder) && isOwnName(ownFolder, 'manycore');
}

/** True: `url`, of this library, only observes other code. */
export function isObserver(url: string): boolean {
  return url.startsWith(`${ownFolder}observe/`);
}

const targets = new Map<string, string | undefined>();

/**
 * The file that `specifier` means for the module at `parent` ('' for an absolute one); `undefined`: it is of
 * Node, of a package, or missing.
 */
export function urlOfModule(specifier: string, parent: string): string | undefined {
  const key = `${specifier} ${parent}`;
  if (targets.has(key)) return targets.get(key);
  const target = findModule(specifier, parent);
  const found = target !== undefined && isOfUser(target) ? bareUrl(target) : undefined;
  targets.set(key, found);
  return found;
}

/** The same for a text that may be a specifier: names of other packages are not resolved. */
export function urlOfMentioned(specifier: string, parent: string): string | undefined {
  if (specifier.startsWith('data:')) return bareUrl(specifier);
  const isMeant = /^(?:\.|\/|#|file:)/.test(specifier) || isOwnName(parent, specifier);
  return isMeant ? urlOfModule(specifier, parent) : undefined;
}

/** The URL of a path, with the query that makes Node load the file once more; `undefined`: it is no path. */
export function relativeUrl(specifier: string, parent: string | undefined): string | undefined {
  return /^\.{0,2}\//.test(specifier) ? new URL(specifier, parent).href : undefined;
}

function findModule(specifier: string, parent: string): string | undefined {
  if (specifier.startsWith('file:')) return specifier;
  if (specifier.startsWith('/')) return pathToFileURL(specifier).href;
  if (specifier.startsWith('node:') || !parent.startsWith('file:')) return undefined;
  const { resolve } = createRequire(parent);
  // Compilers write the name of the file that they would make, or leave the extension out.
  const names = [specifier, specifier.replace(/\.([mc]?)js(x?)$/, '.$1ts$2')];
  if (/\.[mc]?tsx?$/.test(bareUrl(parent))) names.push(`${specifier}.ts`, `${specifier}.tsx`);
  for (const name of names) {
    try {
      const isRelative = /^\.{1,2}\//.test(name);
      return pathToFileURL(resolve(isRelative ? fileURLToPath(new URL(name, parent).href) : name))
        .href;
    } catch {
      // The next candidate.
    }
  }
  return undefined;
}

/** By folder of a module: the name of the package that it is in. */
const names = new Map<string, string>();

/** True: `specifier` begins with the name of the package that holds the module at `url`. */
function isOwnName(url: string, specifier: string): boolean {
  if (url.startsWith('data:')) return false;
  const folder = url.replace(/[^/]*$/, '');
  let name = names.get(folder);
  if (name === undefined) {
    name = nameOfPackage(folder);
    names.set(folder, name);
  }
  return name !== '' && (specifier === name || specifier.startsWith(`${name}/`));
}

function nameOfPackage(folder: string): string {
  if (!folder.startsWith('file:')) return '';
  try {
    const { name } = JSON.parse(packageTextAround(fileURLToPath(folder)) ?? '');
    return typeof name === 'string' ? name : '';
  } catch {
    return '';
  }
}
