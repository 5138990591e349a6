// A thread with a pool, which stands still while the first word of its memory is 1.

import { parentPort, workerData } from 'node:worker_threads';
import { Pool } from '../../../src/public.js';

const words = new Int32Array(workerData);
const pool = new Pool({ size: 1, worker: 'thread' });
await pool.run(() => 1);
parentPort?.on('message', () => {
  Atomics.wait(words, 0, 1);
});
