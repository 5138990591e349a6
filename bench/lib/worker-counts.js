// Numbers of workers for cases that measure the gain of each further one: from 1 to the number granted here.
import { Pool } from 'manycore';

/**
 * Resolves to the numbers; the last is the library's default: the scheduler's affinity, and the control
 * group's quota.
 */
export async function grantedWorkerCounts() {
  const { workerCounts } = await import('../../dist/bench/report/index.js');
  const pool = new Pool({ channel: 'socket' });
  const { count } = pool.stats().cores;
  await pool.close();
  return workerCounts(count);
}
