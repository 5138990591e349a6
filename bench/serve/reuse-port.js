// A program in threads or processes that each have a listening socket of their own with SO_REUSEPORT, as in
// Watt and Deno: `reuse-port.js threads|processes COUNT PROGRAM`.
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';

const [, , kind, count, program] = process.argv;
const entry = new URL('share-port.js', import.meta.url);
for (let index = 0; index < Number(count); index += 1) {
  if (kind === 'processes') fork(fileURLToPath(entry), [program]);
  else new Worker(entry, { argv: [program] });
}
