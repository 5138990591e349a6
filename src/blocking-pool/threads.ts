// The pool of libuv as its threads look from outside, where the memory of its process is closed or its
// executable has no symbols: how many there are and how many sleep, and not how many jobs wait. The
// threads have a name of their own from Node 22 on.

import { namesIn, readStat, textOf } from '../proc/index.js';
import type { NodeProcess } from './target.js';

export interface PoolThreads {
  readonly threads: number;
  /** Those that sleep until there is a job. */
  readonly idleThreads: number;
}

const poolName = 'libuv-worker';
/** Of threads that V8 has from the start on. */
const otherName = 'V8Worker';

/** `undefined` where threads have no names of their own. */
export function poolThreads({ folder }: NodeProcess): PoolThreads | undefined {
  const tasks = namesIn(`${folder}/task`).map((name) => `${folder}/task/${name}`);
  const named = tasks.map((task) => ({ task, name: textOf(`${task}/comm`).trim() }));
  const threads = named.filter(({ name }) => name === poolName);
  if (threads.length === 0 && !named.some(({ name }) => name.endsWith(otherName))) return undefined;
  const idle = threads.filter(({ task }) => sleepsForJob(task));
  return { threads: threads.length, idleThreads: idle.length };
}

/** A thread may also sleep within a job, for a disk or a name server: the kernel says where it does. */
function sleepsForJob(task: string): boolean {
  if (readStat(task)?.state !== 'S') return false;
  const place = textOf(`${task}/wchan`);
  return place === '' || place === '0' || place.startsWith('futex');
}
