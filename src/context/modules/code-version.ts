// Versions of the user's modules: short hashes of a file and of the files that it imports, itself or by others.
// Two threads or machines with the same version of a module run the same code. A package counts by the name and
// the version in its package.json. Imports are found in the texts by a pattern, which may find more of them (in
// a comment) and misses computed names alone. Files are read again when their time or size has changed.
// Not here: loading a module anew (units/unit/unit-module.ts), comparing versions.

import { readFileSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { nodeCrypto } from '../../lib/index.js';
import { packageTextAround, packageTextIn } from './package-text.js';
import { bareUrl, isOwn, urlOfMentioned, urlOfModule } from './resolve-module.js';

/** Characters of a version, of 4 bits each. */
const versionLength = 12;
/** Files beyond this number do not count. */
const maxFiles = 1000;

interface KnownFile {
  readonly stamp: string;
  readonly hash: string;
  readonly imports: readonly string[];
}

const known = new Map<string, KnownFile>();

/** Specifiers of static and dynamic imports, exports from, and calls of `require`. */
const specifiers = /(?:\bfrom|\bimport|\bimport\s*\(|\brequire\s*\()\s*(['"`])([^'"`\n]+)\1/g;

/** Returns `undefined` for a file that cannot be read. */
function fileAt(url: string): KnownFile | undefined {
  try {
    const path = fileURLToPath(url);
    const { mtimeNs, size, ino } = statSync(path, { bigint: true });
    const stamp = `${mtimeNs} ${size} ${ino}`;
    const before = known.get(url);
    if (before?.stamp === stamp) return before;
    const bytes = readFileSync(path);
    const found = [...bytes.toString('utf8').matchAll(specifiers)].flatMap(([, , each = '']) => {
      const target = urlOfMentioned(each, url);
      return target !== undefined && isOwn(target) && target.startsWith('file:') ? [target] : [];
    });
    const file = { stamp, hash: hashOf([bytes]), imports: [...new Set(found)] };
    known.set(url, file);
    return file;
  } catch {
    return undefined;
  }
}

function hashOf(parts: readonly (string | Uint8Array)[]): string {
  const hash = nodeCrypto().createHash('sha256');
  for (const each of parts) hash.update(each);
  return hash.digest('hex').slice(0, versionLength);
}

/** Returns the files that the one at `url` imports in the end, itself first, in the order of the texts. */
function filesOf(
  url: string,
  read: (url: string) => KnownFile | undefined,
): Map<string, KnownFile> {
  const files = new Map<string, KnownFile>();
  const wanted = new Set([url]);
  for (const each of wanted) {
    const file = files.size < maxFiles ? read(each) : undefined;
    if (file === undefined) continue;
    files.set(each, file);
    for (const next of file.imports) wanted.add(next);
  }
  return files;
}

function versionOf(url: string, files: Iterable<KnownFile>): string | undefined {
  if (!isOwn(url)) return nameAndVersion(packageTextAround(fileURLToPath(new URL('.', url))));
  const hashes = [...files].map(({ hash }) => hash);
  return hashes.length === 0 ? undefined : hashOf(hashes);
}

/**
 * Returns the version of the module at `url`, a `file:` URL, and of each module that it imports in the end, by
 * their URLs without queries; empty for a file that cannot be read.
 */
export function codeVersions(url: string): ReadonlyMap<string, string> {
  const all = filesOf(bareUrl(url), fileAt); // each is read once
  const versions = new Map<string, string>();
  for (const each of all.keys()) {
    const version = versionOf(each, filesOf(each, (file) => all.get(file)).values());
    if (version !== undefined) versions.set(each, version);
  }
  return versions;
}

/** Returns the version of the module at `url`; `undefined`: it is no file that can be read. */
export function codeVersion(url: string): string | undefined {
  const bare = bareUrl(url);
  return bare.startsWith('file:') ? versionOf(bare, filesOf(bare, fileAt).values()) : undefined;
}

/**
 * Returns the version of the module that `specifier` names for the one at `parent` ('' for an absolute one);
 * `undefined`: it is one of Node, or not found.
 */
export function importVersion(specifier: string, parent: string): string | undefined {
  const url = urlOfModule(specifier, parent);
  if (url !== undefined) return codeVersion(url);
  if (specifier.startsWith('file:')) return codeVersion(specifier);
  const [name] = /^(?:@[\w.-]+\/)?[\w.-]+(?=$|\/)/.exec(specifier) ?? [];
  if (name === undefined || !parent.startsWith('file:')) return undefined;
  for (let folder = new URL('.', bareUrl(parent)); ; folder = new URL('..', folder)) {
    const text = packageTextIn(fileURLToPath(new URL(`node_modules/${name}/`, folder)));
    if (text !== undefined) return nameAndVersion(text);
    if (folder.pathname === '/' || folder.href === new URL('..', folder).href) return undefined;
  }
}

function nameAndVersion(text: string | undefined): string | undefined {
  try {
    const { name, version }: { name?: unknown; version?: unknown } = JSON.parse(text ?? '');
    return typeof name === 'string' ? `${name}@${String(version ?? '0')}` : undefined;
  } catch {
    return undefined;
  }
}

/** A module as the code of a task names it, with the version that its sender has. */
export interface ModuleVersion {
  readonly specifier: string;
  /** URL of the importing module; '' when `specifier` is absolute. */
  readonly parent: string;
  readonly version: string;
}

/** Versions of the files that a group of workers has loaded, which keep them until they end. */
export class LoadedVersions {
  readonly #files = new Map<string, string>();

  /** Notes that these modules are loaded now. Returns false where another version of a file is loaded already. */
  add(modules: readonly ModuleVersion[]): boolean {
    const found = new Map<string, string>();
    for (const { specifier, parent } of modules) {
      const url = urlOfModule(specifier, parent);
      for (const [file, version] of url === undefined ? [] : codeVersions(url)) {
        if ((this.#files.get(file) ?? version) !== version) return false;
        found.set(file, version);
      }
    }
    for (const [file, version] of found) this.#files.set(file, version);
    return true;
  }
}
