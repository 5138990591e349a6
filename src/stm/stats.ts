// Statistics of the transactional memory of the program: what all its threads did since its first variable.
// Not here: the counting (crates/core/src/stm/figures.rs).

import { callNative } from '../native.js';
import type { Space } from './space.js';

/** Counts of all threads of the program; each wraps at 2³². */
export interface StmStats {
  /**
   * Threads that take part: the program's, workers that have met a variable, and one more in each process in which a
   * transaction has slept.
   */
  readonly threads: number;
  /** Memory that variables and collections have taken so far, in bytes. It is used again, and never given back. */
  readonly memoryBytes: number;
  /** Transactions that set something. Those that only read are not counted. */
  readonly commits: number;
  /** Attempts in vain: another transaction changed what they had read. They ran again. */
  readonly conflicts: number;
  /** Commits of others that stood in the way, did not go on, and were undone. They ran again. */
  readonly thefts: number;
  /** Commits of threads that ended in the middle, which others undid or completed. */
  readonly recoveries: number;
  /** Times that a transaction slept until something changed. */
  readonly sleeps: number;
  /** Variables and collections that conflicts were about of late, the one with the most first. */
  readonly contended: readonly StmContention[];
}

/** A variable or collection that transactions of several threads use at the same time, and change. */
export interface StmContention {
  /** The name that it has by `named()`; `undefined`: none. */
  readonly name: string | undefined;
  readonly kind: StmKind | undefined;
  /** Conflicts of late, some thousands at most: they compare what is in the list, and are no sum. */
  readonly conflicts: number;
}

/** `undefined` stands for a collection without a name. */
export type StmKind = 'TVar' | 'TMap' | 'TSortedMap' | 'TList' | 'TQueue' | 'TCounter';

/** The order of `NativeTransactions.figures()`. */
const figureNames = [
  'threads',
  'heapWords',
  'commits',
  'conflicts',
  'thefts',
  'recoveries',
  'sleeps',
] as const;

function statsFrom(figures: readonly number[], contended: readonly StmContention[]): StmStats {
  const of = (name: (typeof figureNames)[number]): number =>
    figures[figureNames.indexOf(name)] ?? 0;
  return {
    threads: of('threads'),
    memoryBytes: of('heapWords') * Int32Array.BYTES_PER_ELEMENT,
    commits: of('commits'),
    conflicts: of('conflicts'),
    thefts: of('thefts'),
    recoveries: of('recoveries'),
    sleeps: of('sleeps'),
    contended,
  };
}

/** Statistics where this thread takes no part. */
export const noStats: StmStats = Object.freeze(statsFrom([], []));

export function statsOf(space: Space): StmStats {
  const { native } = space;
  return statsFrom(
    callNative(() => native.figures()),
    contentionsIn(callNative(() => native.contended())),
  );
}

/** An object with a name. */
export interface Known {
  readonly name: string;
  readonly kind: StmKind;
}

let namesByIndex: () => ReadonlyMap<number, Known> = () => new Map();

/** Sets what returns everything that has a name, by the index of the variable that stands for it. */
export function setNames(names: typeof namesByIndex): void {
  namesByIndex = names;
}

/** `found`: for each object its index, 1 for a collection, and its conflicts. */
function contentionsIn(found: readonly number[]): StmContention[] {
  if (found.length === 0) return [];
  const names = namesByIndex();
  const all: StmContention[] = [];
  for (let at = 0; at < found.length; at += 3) {
    const [index = 0, isCollection = 0, conflicts = 0] = found.slice(at, at + 3);
    const known = names.get(index);
    const kind = known?.kind ?? (isCollection === 0 ? 'TVar' : undefined);
    all.push({ name: known?.name, kind, conflicts });
  }
  return all.sort((one, other) => other.conflicts - one.conflicts);
}

/** The same as the agent reports it, with the number of the memory: each loop of a server reports the same one. */
export function sampleOf(space: Space): StmStats & { readonly space: number } {
  return { ...statsOf(space), space: space.at.id };
}
