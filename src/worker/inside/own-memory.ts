// The worker's half of its memory statistics (memory-request.ts): its heap, and the pauses of its collector
// from the first request on, until no request came for a while. Without requests a worker observes nothing.

import { GcPauses, heapStats, watchMs } from '../../heap/index.js';
import { nowMs, setImmediate, setTimeout } from '../../lib/index.js';
import type { WorkerMemory } from '../protocol.js';

/** One for this thread: parents that share a worker get the same statistics. */
let pauses: GcPauses | undefined;
let end: NodeJS.Timeout | undefined;

/** Calls `onSample` in this turn of the loop, when all pauses before it are counted. */
export function sampleMemory(onSample: (memory: WorkerMemory) => void): void {
  pauses ??= new GcPauses();
  const counted = pauses;
  counted.start();
  end ??= setTimeout(() => counted.stop(), watchMs).unref();
  end.refresh();
  // By Node, pauses are reported in an immediate of its own, which comes first.
  setImmediate(() => {
    onSample({ atMs: nowMs(), heap: heapStats(), gc: counted.stats() });
  });
}
