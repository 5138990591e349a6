// A program with a pool that has workers only while messages make it work.

import { Pool } from '../../../src/public.js';

function spin(): void {
  const end = performance.now() + 5;
  while (performance.now() < end);
}

const pool = new Pool({ size: { min: 0, max: 1 }, idleTimeMs: 100 });
let isWorking = false;

async function work(): Promise<void> {
  while (isWorking) await pool.run(spin);
}

process.on('message', (message) => {
  isWorking = message === 'work';
  void work();
});
