// The data that a thread of ours was started with: for its entry, and not for the user's code in it.

import { createRequire, syncBuiltinESMExports } from 'node:module';
import type * as WorkerThreads from 'node:worker_threads';

/** Once in each thread: `workerData` of `node:worker_threads` is `null` afterwards, as in a program. */
export function takeWorkerData(): unknown {
  // Loaded here: a process starts faster and smaller without it.
  const threads: typeof WorkerThreads = createRequire(import.meta.url)('node:worker_threads');
  const data: unknown = threads.workerData;
  Reflect.set(threads, 'workerData', null);
  syncBuiltinESMExports();
  return data;
}
