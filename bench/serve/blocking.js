// hello.js, and the first of its loops is busy for 200 ms of every second.
import cluster from 'node:cluster';
import { threadId } from 'node:worker_threads';
import './hello.js';

if ((cluster.worker?.id ?? threadId) === 1) {
  setInterval(() => {
    const end = performance.now() + 200;
    while (performance.now() < end);
  }, 1000);
}
