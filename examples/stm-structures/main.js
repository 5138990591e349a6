// Compares how structures scale. The experiment of Harris, Marlow, Peyton Jones and Herlihy (2005): operations per second on a
// shared set, by the number of processes.   node examples/stm-structures/main.js [numbers in the set] [ms]
import { availableParallelism } from 'node:os';
import { Pool } from 'manycore';
import { fill, structures, work } from './structures.js';

const count = Number(process.argv[2] ?? 100);
const windowMs = Number(process.argv[3] ?? 500);
const windows = { warmMs: 2 * windowMs, windowMs };

for (const [name, { says }] of Object.entries(structures)) {
  let alone = 0;
  for (let workers = 1; workers <= availableParallelism(); workers *= 2) {
    const set = fill(name, count);
    const pool = new Pool({ size: workers });
    const counts = await Promise.all(
      Array.from({ length: workers }, () => pool.run(work, name, set, count, windows)),
    );
    await pool.close();
    const perSecond = counts.reduce((sum, each) => sum + each, 0) / (windowMs / 1000);
    if (workers === 1) alone = perSecond;
    const times = (perSecond / alone).toFixed(2);
    console.log(`${says}: ${workers} × ${Math.round(perSecond)} operations/s, ${times} times one`);
  }
}
