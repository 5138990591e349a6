// A program with a pool that always has something to do.

import { Pool } from '../../../src/public.js';

function slow(): number {
  const end = performance.now() + 2;
  while (performance.now() < end);
  return end;
}

function slowFail(): never {
  const end = performance.now() + 2;
  while (performance.now() < end);
  throw new Error('as it should');
}

const pool = new Pool({ size: 1 });
let isOver = false;

process.on('message', async (message) => {
  if (message !== 'end') return;
  isOver = true;
  await pool.close();
  process.disconnect();
});

while (!isOver) {
  await pool.run((count: number) => Array.from({ length: count }, (_, at) => at * at), 10_000);
  await pool.run(slow);
  await pool.run(slowFail).catch(() => {});
  await new Promise((resolve) => setTimeout(resolve, 5));
}
