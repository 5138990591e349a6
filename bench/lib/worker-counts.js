// How many workers a case tries that asks what each further one adds: from 1 to what this machine grants.
import { Pool } from 'manycore';

/** What the library would use by itself: the scheduler's affinity, and the control group's quota. */
export async function grantedWorkerCounts() {
  const { workerCounts } = await import('../../dist/bench/report/index.js');
  const pool = new Pool({ channel: 'socket' });
  const { count } = pool.stats().cores;
  await pool.close();
  return workerCounts(count);
}
