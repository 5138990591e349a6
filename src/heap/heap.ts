// Sizes of the heap of this thread, and the form in which loops and workers report them and the pauses of
// their collector (gc-pauses.ts counts those).

import { getHeapStatistics } from 'node:v8';

/** Counting stops when no reader has come for so long. */
export const watchMs = 120_000;

/** Collections of one kind, since counting started. */
export interface GcStats {
  readonly count: number;
  readonly totalMs: number;
  readonly maxMs: number;
}

/** The kinds of collections of V8. */
export type GcKind = 'minor' | 'major' | 'incremental' | 'weakCallbacks';

export type GcByKind = Readonly<Record<GcKind, GcStats>>;

export interface HeapStats {
  readonly usedBytes: number;
  readonly totalBytes: number;
  /** The limit at which V8 ends the process. */
  readonly limitBytes: number;
  /** Memory outside of the heap that objects in it own. */
  readonly externalBytes: number;
}

export function heapStats(): HeapStats {
  const heap = getHeapStatistics();
  return {
    usedBytes: heap.used_heap_size,
    totalBytes: heap.total_heap_size,
    limitBytes: heap.heap_size_limit,
    externalBytes: heap.external_memory,
  };
}
