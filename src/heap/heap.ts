// The heap of this thread, and what is told of the pauses of its collector (gc-pauses.ts counts them): loops
// and hosts tell of theirs in the same words.

import { getHeapStatistics } from 'node:v8';

/** Somebody who asks less often than that is nobody who watches. */
export const watchMs = 120_000;

/** Of one kind of collection, since somebody watches. */
export interface GcFigures {
  readonly count: number;
  readonly totalMs: number;
  readonly maxMs: number;
}

/** As V8 tells them apart. */
export type GcKind = 'minor' | 'major' | 'incremental' | 'weakCallbacks';

export type GcByKind = Readonly<Record<GcKind, GcFigures>>;

export interface HeapFigures {
  readonly usedBytes: number;
  readonly totalBytes: number;
  /** At which V8 gives up. */
  readonly limitBytes: number;
  /** Memory outside of the heap that lives as long as objects in it. */
  readonly externalBytes: number;
}

export function heapFigures(): HeapFigures {
  const heap = getHeapStatistics();
  return {
    usedBytes: heap.used_heap_size,
    totalBytes: heap.total_heap_size,
    limitBytes: heap.heap_size_limit,
    externalBytes: heap.external_memory,
  };
}
