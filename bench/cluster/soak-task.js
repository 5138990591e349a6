// The task of durable-soak.
import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/** Notes in `file` that this node begins it, and returns twice the number. */
export async function double(n, file, ms) {
  appendFileSync(file, `${n} ${Date.now()} ${process.ppid}\n`);
  await sleep(ms);
  return n * 2;
}
