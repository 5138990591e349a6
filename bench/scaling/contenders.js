// Who maps a workload: the plain loop, and `pmap` over a pool on each channel. Not here: `no-parent`,
// which maps nothing together (measure.js).
import { threadId } from 'node:worker_threads';
import { Pool, perHost, pmap, shared } from 'manycore';
import { watchGc } from './gc.js';
import { allocateHere, openWorkload } from './workloads/index.js';

const channels = {
  shm: { channel: 'shm' },
  socket: { host: 'process', channel: 'socket' },
  memory: { host: 'thread', channel: 'memory' },
};
export const channelNames = Object.keys(channels);

const longestReadMs = 10_000;
const hostGc = perHost(watchGc);

/**
 * Opens a workload for a contender, in the memory that suits it: `{ items, map, run, gcMs }`.
 * `run()` maps all items and gives the results or promises them; `gcMs()` promises how long
 * collectors held up this process and the hosts so far.
 */
export async function openMapper(contender, name, hosts) {
  const ownGcMs = watchGc();
  if (contender === 'loop') {
    const { items, map } = await openWorkload(name, allocateHere);
    return { items, map, run: () => items.map(map), gcMs: ownGcMs };
  }
  const pool = new Pool({ size: hosts, ...channels[contender] });
  await pool.warm();
  // Channels that share no memory copy it, as they do any other.
  const { items, map } = await openWorkload(name, shared);
  return {
    items,
    map,
    run: () => pmap(items, map, { pool }),
    gcMs: async () => (await ownGcMs()) + (await hostsGcMs(pool, hosts)),
  };
}

/** Asks until each host has answered: nobody chooses the host of a task. */
async function hostsGcMs(pool, hosts) {
  const found = new Map();
  const deadline = performance.now() + longestReadMs;
  while (found.size < hosts) {
    if (performance.now() > deadline) {
      throw new Error(`only ${found.size} of ${hosts} hosts told the time of their collectors`);
    }
    const answers = await Promise.all(Array.from({ length: hosts }, () => pool.run(readHost)));
    for (const { host, gcMs } of answers) found.set(host, gcMs);
  }
  return [...found.values()].reduce((sum, gcMs) => sum + gcMs, 0);
}

/** Runs in a host, long enough for the other calls to go to the others. */
async function readHost() {
  const gcMs = await hostGc()();
  await new Promise((resolve) => setTimeout(resolve, 20));
  return { host: `${process.pid}:${threadId}`, gcMs };
}
