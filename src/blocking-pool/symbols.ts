// Addresses of libuv's thread pool: static variables of its threadpool.c, which no function exposes. Builds of
// nodejs.org, npm and most distributions have their symbols. A stripped Node has none, and neither has one that
// loads libuv as a shared library.

import { statSync } from 'node:fs';
import { findVariables, hasDynamicName, isStripped, readElf } from './elf.js';
import { withFile } from './file.js';

/** Addresses as the linker gave them, before relocation. */
export interface PoolSymbols {
  /** Entry point; its address in memory gives the relocation. */
  readonly entry: number;
  /** The list of jobs: two pointers, to the first and to the last. */
  readonly jobs: number;
  /** 32 bits each. */
  readonly threads: number;
  readonly idleThreads: number;
  /** The list of waiting name lookups, which one entry among the jobs represents. */
  readonly lookups: number;
  readonly lookupsEntry: number;
  /** The entry that makes threads exit. */
  readonly exitEntry: number;
}

export interface Executable {
  readonly symbols: PoolSymbols | undefined;
  /** The reason why there are no symbols. */
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
/** `node::Start(int, char**)`, present in every Node, library or executable. */
const startOfNode = '_ZN4node5StartEiPPc';

/** A cache of findings for each version of a file. */
class Known<T> {
  readonly #found = new Map<string, T>();
  readonly #read: (path: string) => T;

  constructor(read: (path: string) => T) {
    this.#read = read;
  }

  /** The finding for `path`. Throws the errors of `open`. */
  at(path: string): T {
    const { dev, ino, size, mtimeMs } = statSync(path);
    const key = `${dev}:${ino}:${size}:${mtimeMs}`;
    const before = this.#found.get(key);
    if (before !== undefined) return before;
    const found = this.#read(path);
    if (this.#found.size >= maxKnown) this.#found.clear();
    this.#found.set(key, found);
    return found;
  }
}

const maxKnown = 32;
const executables = new Known(readExecutable);
const nodes = new Known((path) =>
  withFile(path, (read) => {
    const elf = readElf(read);
    return elf !== undefined && hasDynamicName(read, elf, startOfNode);
  }),
);

/** Reads the addresses of the pool in an executable. Throws the errors of `open`. */
export function executableAt(path: string): Executable {
  return executables.at(path);
}

/** True: the executable is Node, stripped or not. Throws the errors of `open`. */
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

/** The symbols, when each name occurs once; `undefined` otherwise. */
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
