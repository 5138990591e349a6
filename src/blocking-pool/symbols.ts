// Where libuv keeps its thread pool: variables of uv's threadpool.c, which no function tells of. Nodes as
// they are shipped (nodejs.org, npm, most distributions) still have their names; one that was stripped, or
// that loads libuv as a library of its own, has not.

import { statSync } from 'node:fs';
import { findVariables, hasDynamicName, isStripped, readElf } from './elf.js';
import { withFile } from './file.js';

/** Addresses as the linker gave them, before the program was moved to its place in memory. */
export interface PoolSymbols {
  /** Where the program begins, which tells how far it was moved. */
  readonly entry: number;
  /** The list of jobs: two pointers, to the first and to the last. */
  readonly jobs: number;
  /** 32 bits each. */
  readonly threads: number;
  readonly idleThreads: number;
  /** Lookups of names wait in a list of their own, for which one entry stands among the jobs. */
  readonly lookups: number;
  readonly lookupsEntry: number;
  /** The entry that ends the threads. */
  readonly exitEntry: number;
}

export interface Executable {
  readonly symbols: PoolSymbols | undefined;
  /** Why there are no symbols. */
  readonly problem: string;
}

const listBytes = 16;
const numberBytes = 4;
const wanted: ReadonlyMap<string, number> = new Map([
  ['wq', listBytes],
  ['nthreads', numberBytes],
  ['idle_threads', numberBytes],
  ['slow_io_pending_wq', listBytes],
  ['run_slow_work_message', listBytes],
  ['exit_message', listBytes],
]);
/** `node::Start(int, char**)`: what Node is started with, whether it is a library or not. */
const startOfNode = '_ZN4node5StartEiPPc';

/** What a file is, once for each version of it: files seldom change, and some milliseconds are dear. */
class Known<T> {
  readonly #found = new Map<string, T>();
  readonly #read: (path: string) => T;

  constructor(read: (path: string) => T) {
    this.#read = read;
  }

  /** Throws what opening the file throws. */
  at(path: string): T {
    const { dev, ino, size, mtimeMs } = statSync(path);
    const key = `${dev}:${ino}:${size}:${mtimeMs}`;
    const before = this.#found.get(key);
    if (before !== undefined) return before;
    const found = this.#read(path);
    if (this.#found.size >= mostKnown) this.#found.clear();
    this.#found.set(key, found);
    return found;
  }
}

const mostKnown = 32;
const executables = new Known(readExecutable);
const nodes = new Known((path) =>
  withFile(path, (read) => {
    const elf = readElf(read);
    return elf !== undefined && hasDynamicName(read, elf, startOfNode);
  }),
);

/** Where its pool is. Throws what opening the file throws. */
export function executableAt(path: string): Executable {
  return executables.at(path);
}

/** Whether a program is Node, also when it was stripped. Throws what opening the file throws. */
export function isNodeAt(path: string): boolean {
  return nodes.at(path);
}

function readExecutable(path: string): Executable {
  return withFile(path, (read) => {
    const elf = readElf(read);
    if (elf === undefined) {
      return { symbols: undefined, problem: 'it is no executable of 64 bits' };
    }
    if (isStripped(elf)) {
      return { symbols: undefined, problem: 'its executable was stripped of symbols' };
    }
    const symbols = symbolsIn(findVariables(read, elf, wanted), elf.entry);
    return { symbols, problem: 'its executable names no pool of libuv' };
  });
}

/** None unless each is there once: of two with one name, nobody knows which is meant. */
function symbolsIn(
  found: readonly { readonly name: string; readonly address: number }[],
  entry: number,
): PoolSymbols | undefined {
  const addresses = new Map(found.map(({ name, address }) => [name, address]));
  if (addresses.size !== wanted.size || found.length !== wanted.size) return undefined;
  const at = (name: string): number => addresses.get(name) ?? 0;
  return {
    entry,
    jobs: at('wq'),
    threads: at('nthreads'),
    idleThreads: at('idle_threads'),
    lookups: at('slow_io_pending_wq'),
    lookupsEntry: at('run_slow_work_message'),
    exitEntry: at('exit_message'),
  };
}
