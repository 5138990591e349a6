// A program with a pool of two workers of the kind in its arguments. Sends their numbers and processes. The first
// computes: in short tasks, or `endless` in one. `inThread`: all of it is in a worker thread.

import { isMainThread, parentPort, Worker } from 'node:worker_threads';
import { Pool } from '../../../src/public.js';

const [, , kind = 'process', how] = process.argv;

function burnsTime(count: number): number {
  let sum = 0;
  for (let at = 0; at < count; at += 1) sum += Math.sqrt(at);
  return sum;
}

async function open(send: (workers: object) => void): Promise<void> {
  const ofKind = kind === 'thread' ? 'thread' : 'process';
  const pool = new Pool({ worker: kind === 'sandbox' ? { kind: 'sandbox' } : ofKind, size: 2 });
  const wait = () => new Promise((resolve) => setTimeout(resolve, 50));
  // One worker may run both calls while the other starts.
  while (pool.stats().workers.filter(({ state }) => state === 'ready').length < 2) {
    await Promise.all([pool.run(wait), pool.run(wait)]);
  }
  const workers = pool.stats().workers.map(({ id, pid }) => ({ id, pid }));
  const isEndless = how === 'endless';
  const next = (): Promise<unknown> =>
    pool.run(burnsTime, isEndless ? Infinity : 1e6).then(next, () => {});
  void next();
  void next();
  send(workers);
}

if (!isMainThread) {
  await open((workers) => parentPort?.postMessage(workers));
} else if (how === 'inThread') {
  const thread = new Worker(new URL(import.meta.url), { argv: process.argv.slice(2) });
  thread.on('message', (workers) => process.send?.(workers));
} else {
  await open((workers) => process.send?.(workers));
}
setInterval(() => {}, 1000);
