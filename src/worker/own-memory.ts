// The worker's half of what it tells of its memory (memory-request.ts): its heap, and the pauses of its collector
// from the first question on, until nobody has asked for a while. A worker that is never asked observes nothing.

import { GcPauses, heapStats, watchMs } from '../heap/index.js';
import { nowMs, setImmediate, setTimeout } from '../internal/index.js';
import type { WorkerMemory } from './protocol.js';

/** Of this thread: parents that share a worker are told the same. */
let pauses: GcPauses | undefined;
let end: NodeJS.Timeout | undefined;

/** Calls `onSample` in this turn of the loop, when all pauses before it are counted. */
export function sampleMemory(onSample: (memory: WorkerMemory) => void): void {
  pauses ??= new GcPauses();
  const counted = pauses;
  counted.start();
  end ??= setTimeout(() => counted.stop(), watchMs).unref();
  end.refresh();
  // Where Node tells of pauses, it does so by an immediate of its own, which comes first.
  setImmediate(() => {
    onSample({ atMs: nowMs(), heap: heapStats(), gc: counted.stats() });
  });
}
