// A program with a pool that goes on when a worker is killed.

import { Pool } from '../../../src/public.js';

function work(): number {
  const end = performance.now() + 5;
  while (performance.now() < end);
  return end;
}

const pool = new Pool({ size: 2 });

async function goOn(): Promise<never> {
  for (;;) {
    await pool.run(work).catch(() => {});
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

await Promise.all([goOn(), goOn()]);
