// Adds one to each of 1 … 100 and prints the sum, with `worker_threads` by hand. The next number goes to the
// next free thread, results keep their places, and a thread that fails is noticed.
import { availableParallelism } from 'node:os';
import { isMainThread, parentPort, Worker } from 'node:worker_threads';

if (isMainThread) {
  const numbers = Array.from({ length: 100 }, (_, index) => index + 1);
  const added = await mapInThreads(numbers, availableParallelism());
  console.log(added.reduce((sum, number) => sum + number));
} else {
  parentPort.on('message', ({ index, number }) => {
    parentPort.postMessage({ index, result: number + 1 });
  });
}

function mapInThreads(items, threadCount) {
  return new Promise((resolve, reject) => {
    const results = new Array(items.length);
    const threads = [];
    let next = 0;
    let done = 0;
    const end = (settle) => {
      for (const thread of threads) thread.terminate();
      settle();
    };
    const sendNext = (thread) => {
      if (next === items.length) return;
      thread.postMessage({ index: next, number: items[next] });
      next += 1;
    };
    for (let count = 0; count < threadCount; count += 1) {
      const thread = new Worker(new URL(import.meta.url));
      threads.push(thread);
      thread.on('error', (error) => end(() => reject(error)));
      thread.on('message', ({ index, result }) => {
        results[index] = result;
        done += 1;
        if (done === items.length) end(() => resolve(results));
        else sendNext(thread);
      });
      sendNext(thread);
    }
  });
}
