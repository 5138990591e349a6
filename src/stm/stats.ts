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
}

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

function statsFrom(figures: readonly number[]): StmStats {
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
  };
}

/** Statistics where this thread takes no part. */
export const noStats: StmStats = Object.freeze(statsFrom([]));

export function statsOf({ native }: Space): StmStats {
  return statsFrom(callNative(() => native.figures()));
}

/** The same as the agent reports it, with the number of the memory: each loop of a server reports the same one. */
export function sampleOf(space: Space): StmStats & { readonly space: number } {
  return { ...statsOf(space), space: space.at.id };
}
