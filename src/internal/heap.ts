// The heap of this thread and the pauses of its collector: loops and hosts tell of theirs in the same words.
// Pauses are counted while somebody wants to know them, because an observer of them costs something.

import { constants, PerformanceObserver } from 'node:perf_hooks';
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

const kindsOfNode = new Map<unknown, GcKind>([
  [constants.NODE_PERFORMANCE_GC_MINOR, 'minor'],
  [constants.NODE_PERFORMANCE_GC_MAJOR, 'major'],
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL, 'incremental'],
  [constants.NODE_PERFORMANCE_GC_WEAKCB, 'weakCallbacks'],
]);
const none: GcFigures = { count: 0, totalMs: 0, maxMs: 0 };

/** Counts between `start` and `stop`; what was counted stays when it is started again. */
export class GcPauses {
  readonly #counts = { minor: none, major: none, incremental: none, weakCallbacks: none };
  #observer: PerformanceObserver | undefined;

  /** Does nothing where it counts already. */
  start(): void {
    if (this.#observer !== undefined) return;
    this.#observer = new PerformanceObserver((list) => this.#note(list.getEntries()));
    this.#observer.observe({ entryTypes: ['gc'] });
  }

  stop(): void {
    this.#observer?.disconnect();
    this.#observer = undefined;
  }

  /** Of the pauses that Node has told of so far: that of this very moment is told in the loop's next turn. */
  figures(): GcByKind {
    this.#note(this.#observer?.takeRecords() ?? []);
    return { ...this.#counts };
  }

  #note(entries: readonly { readonly duration: number; readonly detail?: unknown }[]): void {
    for (const { duration, detail } of entries) {
      const kind = kindsOfNode.get(Object(detail).kind);
      if (kind === undefined) continue;
      const { count, totalMs, maxMs } = this.#counts[kind];
      this.#counts[kind] = {
        count: count + 1,
        totalMs: totalMs + duration,
        maxMs: Math.max(maxMs, duration),
      };
    }
  }
}
