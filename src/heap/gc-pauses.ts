// Counts collections of this thread and the time that they stop it, between `start` and `stop`: in callbacks
// of V8, by the native binary. Without the binary an observer of `perf_hooks` counts, at far higher cost:
// Node 24 needs some 150 µs for the entry of each collection (docs/design/observe.md).

import { constants, PerformanceObserver } from 'node:perf_hooks';
import { type NativeCollections, nativeBinding } from '../native.js';
import type { GcByKind, GcKind, GcStats } from './heap.js';

interface GcCounter {
  /** Starts to count, if it does not count already. Earlier counts stay. */
  start(): void;
  stop(): void;
  stats(): GcByKind;
}

/** Bits of V8's `GCType`, by the names of Node. */
const typeOf: Readonly<Record<GcKind, number>> = {
  minor: constants.NODE_PERFORMANCE_GC_MINOR,
  major: constants.NODE_PERFORMANCE_GC_MAJOR,
  incremental: constants.NODE_PERFORMANCE_GC_INCREMENTAL,
  weakCallbacks: constants.NODE_PERFORMANCE_GC_WEAKCB,
};
const none: GcStats = { count: 0, totalMs: 0, maxMs: 0 };

/** Counts between `start` and `stop`; another `start` continues the counts. */
export class GcPauses implements GcCounter {
  readonly #counter = inV8() ?? new ObservedPauses();

  start(): void {
    this.#counter.start();
  }

  stop(): void {
    this.#counter.stop();
  }

  /** Counts so far. The observer gets the last collections in the next turn of the loop. */
  stats(): GcByKind {
    return this.#counter.stats();
  }
}

/** A counter in V8; `undefined` without the binary, or without V8's callbacks in this Node. */
function inV8(): GcCounter | undefined {
  const binding = nativeBinding();
  if (binding === undefined) return undefined;
  try {
    return new PausesInV8(new binding.NativeCollections());
  } catch {
    return undefined;
  }
}

class PausesInV8 implements GcCounter {
  readonly #collections: NativeCollections;

  constructor(collections: NativeCollections) {
    this.#collections = collections;
  }

  start(): void {
    this.#collections.start();
  }

  stop(): void {
    this.#collections.stop();
  }

  stats(): GcByKind {
    const all = this.#collections.figures();
    return byKind((kind) => {
      const at = 3 * Math.log2(typeOf[kind]);
      const [count = 0, totalMs = 0, maxMs = 0] = all.slice(at, at + 3);
      return { count, totalMs, maxMs };
    });
  }
}

/** Exported for tests, which compare both counters. */
export class ObservedPauses implements GcCounter {
  readonly #counts = new Map<unknown, GcStats>();
  #observer: PerformanceObserver | undefined;

  start(): void {
    if (this.#observer !== undefined) return;
    this.#observer = new PerformanceObserver((list) => this.#note(list.getEntries()));
    this.#observer.observe({ entryTypes: ['gc'] });
  }

  stop(): void {
    this.#observer?.disconnect();
    this.#observer = undefined;
  }

  stats(): GcByKind {
    this.#note(this.#observer?.takeRecords() ?? []);
    return byKind((kind) => this.#counts.get(typeOf[kind]) ?? none);
  }

  #note(entries: readonly { readonly duration: number; readonly detail?: unknown }[]): void {
    for (const { duration, detail } of entries) {
      const type: unknown = Object(detail).kind;
      const { count, totalMs, maxMs } = this.#counts.get(type) ?? none;
      this.#counts.set(type, {
        count: count + 1,
        totalMs: totalMs + duration,
        maxMs: Math.max(maxMs, duration),
      });
    }
  }
}

function byKind(statsOf: (kind: GcKind) => GcStats): GcByKind {
  return {
    minor: statsOf('minor'),
    major: statsOf('major'),
    incremental: statsOf('incremental'),
    weakCallbacks: statsOf('weakCallbacks'),
  };
}
