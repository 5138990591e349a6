// Reads the states of libuv's threads, for a process whose memory may not be read or whose executable has no
// symbols. It gives the number of threads and of sleeping ones, not that of waiting jobs. The threads have names
// of their own since Node 22.

import { namesIn, readStat, textOf } from '../proc/index.js';
import type { NodeProcess } from './node-process.js';

export interface PoolThreads {
  readonly threads: number;
  /** Threads that sleep until a job is queued. */
  readonly idleThreads: number;
}

const poolName = 'libuv-worker';
/** The name of threads of V8, which exist from the start. */
const otherName = 'V8Worker';

/** The states of the threads; `undefined` when threads have no names of their own. */
export function poolThreads({ folder }: NodeProcess): PoolThreads | undefined {
  const tasks = namesIn(`${folder}/task`).map((name) => `${folder}/task/${name}`);
  const named = tasks.map((task) => ({ task, name: textOf(`${task}/comm`).trim() }));
  const threads = named.filter(({ name }) => name === poolName);
  if (threads.length === 0 && !named.some(({ name }) => name.endsWith(otherName))) return undefined;
  const idle = threads.filter(({ task }) => sleepsForJob(task));
  return { threads: threads.length, idleThreads: idle.length };
}

/** True: the thread waits for a job, in a futex. Within a job, for a disk or a name server, it sleeps elsewhere. */
function sleepsForJob(task: string): boolean {
  if (readStat(task)?.state !== 'S') return false;
  const place = textOf(`${task}/wchan`);
  return place === '' || place === '0' || place.startsWith('futex');
}
