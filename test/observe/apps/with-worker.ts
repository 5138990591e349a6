// A server with a loop that has a thread of its own, which has a pool.

import { createServer } from 'node:http';
import { Worker } from 'node:worker_threads';

new Worker(new URL('./thread.js', import.meta.url), {
  workerData: new SharedArrayBuffer(4),
}).unref();
createServer((_request, response) => response.end('hello')).listen(0);
