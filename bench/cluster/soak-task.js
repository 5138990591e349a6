// The task of durable-soak.
import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/** The node: later it may be gone, and another process the parent. */
const node = process.ppid;

/** Notes in `file` that this node begins it, and returns twice the number. */
export async function double(n, file, ms) {
  appendFileSync(file, `${n} ${Date.now()} ${node}\n`);
  await sleep(ms);
  return n * 2;
}
