// The processes of a program: its own, those of its servers and its workers. Memory and processor time are
// read from /proc, because not every process has a thread that tells them; elsewhere only what is told is
// there.

import type { ThreadStats } from '../../agent/index.js';
import { readBlockingPool } from '../../blocking-pool/index.js';
import { type CpuTimes, readStat, rssBytesOf } from '../../proc/index.js';
import { processesOf } from './sources.js';
import type { WorkerReading } from './workers.js';

export interface ProcessReading {
  readonly pid: number;
  readonly role: 'program' | 'server' | 'worker';
  /** Of a worker: a number that the next one has when this has ended; `undefined` for the others. */
  readonly slot: number | undefined;
  readonly residentBytes: number;
  /** On a core, of all its threads; `undefined` where it cannot be seen. */
  readonly cpu: CpuTimes | undefined;
  /** All `undefined` where nothing can be seen. */
  readonly blockingPool: BlockingPoolStats;
}

/** Of libuv's thread pool, on which fs, crypto, zlib and dns.lookup run. */
export interface BlockingPoolStats {
  readonly threads: number | undefined;
  /** Jobs that no thread has begun. */
  readonly waitingJobs: number | undefined;
  /** How long one waited, where they cannot be counted and a thread tells. */
  readonly waitMs: number | undefined;
}

export function processReadings(
  rootPid: number,
  threads: readonly ThreadStats[],
  workers: readonly WorkerReading[],
): ProcessReading[] {
  const slots = new Map(workers.map(({ pid, slot }) => [pid, slot]));
  const all = new Set([
    rootPid,
    ...threads.map(({ pid }) => pid),
    ...processesOf(threads),
    ...workers.flatMap(({ pid }) => pid ?? []),
  ]);
  return [...all].map((pid) => {
    const reported = threads.find(
      (each) => each.pid === pid && each.process !== undefined,
    )?.process;
    const role = pid === rootPid ? 'program' : slots.has(pid) ? 'worker' : 'server';
    const residentBytes = rssBytesOf(pid) || (reported?.rssBytes ?? 0);
    return {
      pid,
      role,
      slot: slots.get(pid),
      residentBytes,
      // One source for a process: each rounds in its own way, and a counter must not go down.
      cpu: readStat(`/proc/${pid}`) ?? reported,
      blockingPool: { ...seenPool(pid), waitMs: reported?.poolWaitMs },
    };
  });
}

function seenPool(pid: number): Pick<BlockingPoolStats, 'threads' | 'waitingJobs'> {
  try {
    const { threads, waitingJobs } = readBlockingPool(pid);
    return { threads, waitingJobs };
  } catch {
    return { threads: undefined, waitingJobs: undefined }; // it has ended, or cannot be seen
  }
}
