// A program with eight event loops, the last of which is late again and again.

import { isMainThread, threadId, Worker } from 'node:worker_threads';
import { Pool } from '../../../src/public.js';

export const pool = new Pool({ size: { min: 0, max: 1 } });

if (isMainThread) for (let count = 0; count < 7; count += 1) new Worker(new URL(import.meta.url));

setInterval(() => {
  const end = performance.now() + (threadId === 7 ? 200 : 0);
  while (performance.now() < end);
}, 500);
