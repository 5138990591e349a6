// Counts collections of this thread and how long they stop it, while somebody wants to know: in V8's own
// callbacks, by the native binary. Without it an observer of `perf_hooks` does, which costs far more: Node 24
// takes some 150 µs for what it tells of each collection (docs/design/observe.md).

import { constants, PerformanceObserver } from 'node:perf_hooks';
import { type NativeCollections, nativeBinding } from '../native.js';
import type { GcByKind, GcFigures, GcKind } from './heap.js';

interface GcCounter {
  /** Does nothing where it counts already. What was counted before stays. */
  start(): void;
  stop(): void;
  figures(): GcByKind;
}

/** Bits of V8's `GCType`, by Node's names. */
const typeOf: Readonly<Record<GcKind, number>> = {
  minor: constants.NODE_PERFORMANCE_GC_MINOR,
  major: constants.NODE_PERFORMANCE_GC_MAJOR,
  incremental: constants.NODE_PERFORMANCE_GC_INCREMENTAL,
  weakCallbacks: constants.NODE_PERFORMANCE_GC_WEAKCB,
};
const none: GcFigures = { count: 0, totalMs: 0, maxMs: 0 };

/** Counts between `start` and `stop`; what was counted stays when it is started again. */
export class GcPauses implements GcCounter {
  readonly #counter = inV8() ?? new ObservedPauses();

  start(): void {
    this.#counter.start();
  }

  stop(): void {
    this.#counter.stop();
  }

  /** By the observer those that Node has told of so far: that of this very moment is told in the loop's next turn. */
  figures(): GcByKind {
    return this.#counter.figures();
  }
}

/** `undefined` without the binary, and where Node does not export what V8 tells. */
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

  figures(): GcByKind {
    const all = this.#collections.figures();
    return byKind((kind) => {
      const at = 3 * Math.log2(typeOf[kind]);
      const [count = 0, totalMs = 0, maxMs = 0] = all.slice(at, at + 3);
      return { count, totalMs, maxMs };
    });
  }
}

/** Exported for tests, which hold one against the other. */
export class ObservedPauses implements GcCounter {
  readonly #counts = new Map<unknown, GcFigures>();
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

  figures(): GcByKind {
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

function byKind(figuresOf: (kind: GcKind) => GcFigures): GcByKind {
  return {
    minor: figuresOf('minor'),
    major: figuresOf('major'),
    incremental: figuresOf('incremental'),
    weakCallbacks: figuresOf('weakCallbacks'),
  };
}
