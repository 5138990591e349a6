// Processes of a program: its own, those of its servers, and its workers. Memory and CPU time come from
// /proc, because not every process has a thread that reports them; on other systems only reported values
// exist.

import type { ThreadStats } from '../../agent/index.js';
import { readBlockingPool } from '../../blocking-pool/index.js';
import { type CpuTimes, readStat, readTree, rssBytesOf } from '../../proc/index.js';
import { processesOf } from './sources.js';
import type { WorkerReading } from './workers.js';

export interface ProcessReading {
  readonly pid: number;
  readonly role: 'program' | 'server' | 'worker';
  /** Slot of a worker, reused by the next worker after its end; `undefined` for other processes. */
  readonly slot: number | undefined;
  readonly residentBytes: number;
  /** CPU time of all its threads; `undefined` when it is unreadable. */
  readonly cpu: CpuTimes | undefined;
  /** All fields are `undefined` when nothing is readable. */
  readonly blockingPool: BlockingPoolStats;
}

/** Stats of libuv's thread pool, on which fs, crypto, zlib and dns.lookup run. */
export interface BlockingPoolStats {
  readonly threads: number | undefined;
  /** Jobs that wait for a thread. */
  readonly waitingJobs: number | undefined;
  /** Measured wait of one job, when jobs cannot be counted and a thread reports it. */
  readonly waitMs: number | undefined;
}

export function processReadings(
  rootPid: number,
  threads: readonly ThreadStats[],
  workers: readonly WorkerReading[],
): ProcessReading[] {
  const partitions = new Set(workers.flatMap(({ pid, isPartition }) => (isPartition ? pid : [])));
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
    const isPartition = partitions.has(pid);
    const residentBytes = isPartition
      ? rssBytesOfTree(pid)
      : rssBytesOf(pid) || (reported?.rssBytes ?? 0);
    return {
      pid,
      role,
      slot: slots.get(pid),
      residentBytes,
      // One source per process: the sources round differently, and a counter must not decrease.
      cpu: isPartition ? cpuOfTree(pid) : (readStat(`/proc/${pid}`) ?? reported),
      blockingPool: { ...seenPool(pid), waitMs: reported?.poolWaitMs },
    };
  });
}

function rssBytesOfTree(pid: number): number {
  return readTree(pid).reduce((sum, each) => sum + rssBytesOf(each), 0);
}

/** CPU time of all processes of a partition, those included that have ended and were waited for. */
function cpuOfTree(pid: number): CpuTimes | undefined {
  const stats = readTree(pid).flatMap((each) => readStat(`/proc/${each}`) ?? []);
  if (stats.length === 0) return undefined;
  const sum = (name: keyof CpuTimes): number =>
    stats.reduce((total, stat) => total + stat[name] + stat.children[name], 0);
  return { userMs: sum('userMs'), systemMs: sum('systemMs') };
}

function seenPool(pid: number): Pick<BlockingPoolStats, 'threads' | 'waitingJobs'> {
  try {
    const { threads, waitingJobs } = readBlockingPool(pid);
    return { threads, waitingJobs };
  } catch {
    return { threads: undefined, waitingJobs: undefined }; // ended, or unreadable
  }
}
