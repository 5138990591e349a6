// Contenders that map a workload: the plain loop, and `pmap` over a pool on each channel. Not here:
// `no-parent`, which maps nothing together (measure.js).
import { threadId } from 'node:worker_threads';
import { Pool, perWorker, pmap, shared } from 'manycore';
import { watchGc } from './gc.js';
import { allocateHere, openWorkload } from './workloads/index.js';

const channels = {
  shm: { channel: 'shm' },
  socket: { worker: 'process', channel: 'socket' },
  memory: { worker: 'thread', channel: 'memory' },
};
export const channelNames = Object.keys(channels);

const longestReadMs = 10_000;
const workerGc = perWorker(watchGc);

/**
 * Opens a workload for a contender, in the memory that suits it: `{ items, map, run, gcMs }`.
 * `run()` maps all items and gives the results or promises them; `gcMs()` promises how long
 * collectors held up this process and the workers so far.
 */
export async function openMapper(contender, name, workers) {
  const ownGcMs = watchGc();
  if (contender === 'loop') {
    const { items, map } = await openWorkload(name, allocateHere);
    return { items, map, run: () => items.map(map), gcMs: ownGcMs };
  }
  const pool = new Pool({ size: workers, ...channels[contender] });
  await pool.warm();
  // Channels that share no memory copy it, as they do any other.
  const { items, map } = await openWorkload(name, shared);
  return {
    items,
    map,
    run: () => pmap(items, map, { pool }),
    gcMs: async () => (await ownGcMs()) + (await workersGcMs(pool, workers)),
  };
}

/** Repeats the request until each worker has answered: a caller cannot choose the worker of a task. */
async function workersGcMs(pool, workers) {
  const found = new Map();
  const deadline = performance.now() + longestReadMs;
  while (found.size < workers) {
    if (performance.now() > deadline) {
      throw new Error(
        `only ${found.size} of ${workers} workers reported the time of their collectors`,
      );
    }
    const answers = await Promise.all(Array.from({ length: workers }, () => pool.run(readWorker)));
    for (const { worker, gcMs } of answers) found.set(worker, gcMs);
  }
  return [...found.values()].reduce((sum, gcMs) => sum + gcMs, 0);
}

/** Runs in a worker, long enough for the other calls to go to the others. */
async function readWorker() {
  const gcMs = await workerGc()();
  await new Promise((resolve) => setTimeout(resolve, 20));
  return { worker: `${process.pid}:${threadId}`, gcMs };
}
