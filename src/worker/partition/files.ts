// The files that a partition gets beside those of its options: node with its libraries, and manycore itself.

import { spawnSync } from 'node:child_process';
import { existsSync, lstatSync, readFileSync, realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { ownOf } from '../../lib/index.js';
import { nativePath } from '../../native.js';
import { unavailable } from './layers.js';

/** A file or folder of this system, and its place in the partition. */
export interface Binding {
  readonly from: string;
  readonly to: string;
}

/** Loaders that a program names by a path of its own: those of glibc (psABI of each architecture), and of musl. */
const loaders = [
  '/lib64/ld-linux-x86-64.so.2',
  '/lib/ld-linux-aarch64.so.1',
  '/lib/ld-musl-x86_64.so.1',
  '/lib/ld-musl-aarch64.so.1',
];

/** Files by which the C library and c-ares find the address of a name. */
const filesOfNames = ['/etc/hosts', '/etc/nsswitch.conf', '/etc/resolv.conf'];

/** The text of classes is parsed where one of their instances is to travel. */
const dependencies = ['acorn'];

/** Found once: the files of a running program stay where they are. */
let ofNode: readonly Binding[] | undefined;
const ofWorkers = new Map<string, readonly Binding[]>();

/** Returns what node needs to start. */
export function nodeFiles(): readonly Binding[] {
  ofNode ??= findNodeFiles();
  return ofNode;
}

/** Returns the same with the program of a worker, at `entry`. */
export function workerFiles(entry: string): readonly Binding[] {
  const found = ofWorkers.get(entry) ?? findWorkerFiles(entry);
  ofWorkers.set(entry, found);
  return found;
}

/** Returns what a partition with the network of its machine needs to find names. */
export function networkFiles(): readonly Binding[] {
  return filesOfNames.filter((path) => existsSync(path)).map(at);
}

function findNodeFiles(): readonly Binding[] {
  return [
    at(process.execPath),
    ...libraryFolders(),
    ...loaders
      .filter((path) => existsSync(path))
      .map((path) => ({ from: realpathSync(path), to: path })),
  ];
}

function findWorkerFiles(entry: string): readonly Binding[] {
  const native = nativePath();
  return [
    ...nodeFiles(),
    ...[...packageFiles(entry), ...dependencyFolders(entry)].map(at),
    ...(native === undefined ? [] : [at(native)]),
  ];
}

/** Returns the `package.json` files by which Node finds out how modules in a folder are written. */
export function packageFilesAbove(path: string): readonly string[] {
  const found: string[] = [];
  for (let folder = path; folder !== dirname(folder); folder = dirname(folder)) {
    const file = join(folder, 'package.json');
    if (existsSync(file)) found.push(file);
  }
  return found;
}

/** True: `path` is `folder`, or below it. */
export function isWithin(path: string, folder: string): boolean {
  const way = relative(folder, path);
  return way !== '..' && !way.startsWith('../');
}

function at(path: string): Binding {
  return { from: realpathSync(path), to: path };
}

/**
 * The folders of the libraries that node is linked with, as the loader names them: a library that the program has
 * loaded may lie beside its secrets.
 */
function libraryFolders(): readonly Binding[] {
  const files = linkedLibraries();
  const folders = new Set([...files, ...files.map((path) => realpathSync(path))].map(dirname));
  const found = [...folders].map(at).flatMap(withAlias);
  return [...new Map(found.map((each) => [each.to, each])).values()];
}

/**
 * Returns the libraries that a program is linked with; empty for one without any. `from`: the loaders that may be here.
 * Throws `PARTITION_UNAVAILABLE` when none lists them: what this process has loaded is no answer.
 */
export function linkedLibraries(
  from: readonly string[] = loaders,
  program = process.execPath,
): readonly string[] {
  const reasons: string[] = [];
  for (const loader of from.filter((path) => existsSync(path))) {
    const { status, stdout, stderr, error } = spawnSync(
      loader,
      ['--list', program],
      ownOf({ encoding: 'utf8', env: {}, timeout: 10_000 }),
    );
    if (status === 0) return pathsIn(String(stdout), / => (\/\S+) \(/g);
    reasons.push(error?.message ?? String(stderr).trim());
  }
  if (!hasLibraries()) return [];
  const why = reasons.length === 0 ? `there is none of ${from.join(', ')}` : reasons.join('; ');
  throw unavailable(
    `no loader lists the libraries of ${program} (${why}): use a build of Node for this system`,
  );
}

/** False: this program is linked statically. */
function hasLibraries(): boolean {
  return / \/\S+\.so(?:\.\S+)?$/m.test(readFileSync('/proc/self/maps', 'utf8'));
}

function pathsIn(text: string, pattern: RegExp): string[] {
  return [...text.matchAll(pattern)].flatMap(([, path]) => path ?? []);
}

/** The loader searches /lib, which may be another name of /usr/lib. */
function withAlias(own: Binding): readonly Binding[] {
  const isAliased = own.to.startsWith('/usr/lib') && lstatSync('/lib').isSymbolicLink();
  return isAliased ? [own, { from: own.from, to: own.to.slice('/usr'.length) }] : [own];
}

/** The packages that manycore imports in a worker, by the paths of its imports: they may be links to elsewhere. */
function dependencyFolders(entry: string): readonly string[] {
  return dependencies.flatMap((name) => {
    const folders = createRequire(entry).resolve.paths(name) ?? [];
    const found = folders.map((folder) => join(folder, name)).find((folder) => existsSync(folder));
    return found === undefined ? [] : [found];
  });
}

/** The compiled files of manycore, and the file that says how they are written. */
function packageFiles(entry: string): readonly string[] {
  const [own] = packageFilesAbove(dirname(entry));
  if (own === undefined) return [dirname(entry)];
  const [folder = ''] = entry.slice(dirname(own).length + 1).split('/');
  return [own, join(dirname(own), folder)];
}
