// worker_threads by hand, as lean as they get: messages are arrays, replies settle by number, calls
// go round robin. The plain Node way for threads.
import { Worker } from 'node:worker_threads';
import { makeCalls } from './calls.js';

const file = new URL('./workers/bare-thread.js', import.meta.url);

export function open(_kind, { workers: count }) {
  const calls = makeCalls();
  const workers = Array.from({ length: count }, () => {
    const worker = new Worker(file);
    worker.on('message', calls.settle);
    worker.on('error', calls.fail);
    return worker;
  });
  let next = 0;
  const turn = () => {
    next = next + 1 === count ? 0 : next + 1;
    return workers[next];
  };
  return {
    caller: (name) => (argument) =>
      calls.begin((call) => turn().postMessage([call, name, argument])),
    mover: () => (bytes) =>
      calls.begin((call) => turn().postMessage([call, 'touchAndMove', bytes], [bytes.buffer])),
    close: () => Promise.all(workers.map((worker) => worker.terminate())),
  };
}
