// The way of worker_threads by hand: a second file that runs in the worker (threads-worker.js), and a number
// for every message, which matches answers to questions. Errors and the worker's death reject the waiting
// promises, pixels are moved instead of copied, and `close` ends the worker.
import { Worker } from 'node:worker_threads';

/** @type {Map<number, { resolve: (image: object) => void, reject: (error: Error) => void }>} */
const waiting = new Map();
let worker;
let lastId = 0;

/** Decodes in the worker; one decode at a time, the others wait in the worker's message queue. */
export function decode(bytes) {
  worker ??= start();
  return new Promise((resolve, reject) => {
    const id = ++lastId;
    waiting.set(id, { resolve, reject });
    worker.postMessage({ id, bytes });
  });
}

/** Ends the worker; decodes that still run are rejected. */
export async function close() {
  await worker?.terminate();
}

function start() {
  const started = new Worker(new URL('./threads-worker.js', import.meta.url));
  let reason = new Error('the decoding worker ended');
  started.on('message', ({ id, image, error }) => {
    const { resolve, reject } = waiting.get(id);
    waiting.delete(id);
    if (error === undefined) resolve(image);
    else reject(error);
  });
  started.on('error', (error) => {
    reason = error;
  });
  started.on('exit', () => {
    if (worker === started) worker = undefined;
    for (const { reject } of waiting.values()) reject(reason);
    waiting.clear();
  });
  return started;
}
