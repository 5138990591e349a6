// Parallel maps with the workers warm, and how well they went.
import { Pool, pmap } from 'manycore';
import { treeCpuUs } from './processes.js';

/** Returns a pool whose workers are ready; `channel` as in its options. */
export async function warmPool({ workers, channel = 'shm' }) {
  const worker = channel === 'memory' ? 'thread' : 'process';
  const pool = new Pool({ size: workers, channel, worker });
  await pool.warm();
  return pool;
}

/** Maps once. Returns items per second, CPU of the whole tree for each, and the map's own figures. */
export async function timeMap(items, mapper, options) {
  const cpuBefore = treeCpuUs();
  const start = performance.now();
  const work = pmap(items, mapper, options);
  const results = await work;
  const tookMs = performance.now() - start;
  return {
    results,
    stats: work.stats(),
    tookMs,
    figures: {
      itemsPerSecond: (items.length / tookMs) * 1000,
      cpuUsPerItem: (treeCpuUs() - cpuBefore) / items.length,
    },
  };
}
