// Samples a running program from outside for a second: its thread pool and thread states repeatedly, its
// memory at the end. By proc(5); nothing in the program changes. Threads that use manycore are also polled,
// before and after that second, for their loops and heaps, which are invisible from outside. Not here: what
// the samples mean (doctor-program.ts).

import { cpus } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type BlockingPoolReading,
  canCountJobs,
  nodeProcess,
  readBlockingPool,
} from '../../../blocking-pool/index.js';
import { hasCode } from '../../../errors.js';
import { messageOf } from '../../../lib/index.js';
import { type PolledThread, ProcessThreads, roleOf } from '../../../observe/index.js';
import { bytesIn, namesIn, readStat, textOf } from '../../../proc/index.js';
import { type HeapLimit, heapLimitFromOutside, youngHeapBytes } from './doctor-heap-limit.js';
import { type CpuQuota, quotaOf } from './doctor-quota.js';
import { type SeenTransactions, transactionsBetween } from './doctor-transactions.js';

/** Samples of one process of Node. */
export interface ProcessSamples {
  readonly pid: number;
  /** Command line, or process title. */
  readonly command: string;
  /** True: it is in another PID namespace, as in a container. */
  readonly isContained: boolean;
  /** One reading per sample; empty when the pool is unreadable, with the reason in `poolProblem`. */
  readonly pool: readonly BlockingPoolReading[];
  readonly poolProblem: string;
  /**
   * Measured wait of a probe job for its pool; `undefined` when jobs can be counted, or no thread reports it.
   */
  readonly poolWaitMs: number | undefined;
  /** Per sample: number of its threads that ran, or could have run on a free core. */
  readonly runnable: readonly number[];
  /** The same for the whole machine, without this process. */
  readonly machineRunnable: readonly number[];
  readonly machineCores: number;
  /** Share of the samples in which its main thread was one of them, 0 to 1. */
  readonly mainShare: number;
  /** True: stopped by a signal or a debugger, at the end. */
  readonly isStopped: boolean;
  /** Threads with an agent; empty when it does not use manycore. */
  readonly threads: readonly SeenThread[];
  /** `undefined`: it has no transactional memory. */
  readonly transactions: SeenTransactions | undefined;
  /** Number of cores that its main thread may run on; 0: unknown. */
  readonly allowedCores: number;
  /** Quota with the counts of that second; `undefined` without a quota. */
  readonly quota: CpuQuota | undefined;
  /** Private memory, swapped or not, in bytes: heaps, buffers, and memory of native code. */
  readonly ownBytes: number;
  /** Inferred from its start; `undefined`: unknown. */
  readonly heapLimit: HeapLimit | undefined;
  readonly openDescriptors: number;
  /** `Infinity`: no limit. */
  readonly maxDescriptors: number;
}

/** A thread with an agent, as of the last poll. */
export interface SeenThread {
  /** 0: the main thread. */
  readonly thread: number;
  /** `main`, `thread 2`, or in a server `loop 0.1`. */
  readonly role: string;
  /** True: no answer within a second, from a thread that may not block. */
  readonly isSilent: boolean;
  /** Delays of its timers in the last second; `undefined`: not reported. */
  readonly lag: { readonly p99Ms: number; readonly maxMs: number } | undefined;
  /** `undefined`: no answer. */
  readonly heap: SeenHeap | undefined;
}

export interface SeenHeap {
  /** The lesser of two polls; it includes garbage. */
  readonly usedBytes: number;
  readonly limitBytes: number;
  /** Part of the limit that V8 reserves for young objects. */
  readonly youngBytes: number;
}

const samplingMs = 1000;
const samplePauseMs = 25;
/** Limit of the displayed command line, which may contain a whole program. */
const maxCommandChars = 120;

/**
 * Samples a process; takes a second, or three when a thread is silent. Rejects with `PROCESS_GONE`, also when
 * it ends meanwhile, with `PROCESS_REFUSED`, `PROCESS_NOT_NODE`, `PROCESS_OTHER_PID_NAMESPACE`.
 */
export async function sampleProcess(pid: number): Promise<ProcessSamples> {
  const { folder, path, isContained } = nodeProcess(pid);
  const probes = !canCountJobs(pid);
  using threads = new ProcessThreads(pid);
  const first = await threads.poll(probes); // starts the sampling of their delays
  const before = quotaOf(folder);
  const { pool, poolProblem, states } = await sampleRepeatedly(pid, folder);
  const last = await threads.poll(probes);
  const youngBytes = last.length === 0 ? 0 : await youngHeapBytes();
  nodeProcess(pid); // throws when it has ended meanwhile
  const status = textOf(`${folder}/status`);
  const command = textOf(`${folder}/cmdline`)
    .replace(/[\0\s]+/g, ' ')
    .trim();
  const limits = textOf(`${folder}/limits`);
  const most = /^Max open files\s+(\d+)/m.exec(limits)?.[1];
  return {
    pid,
    command: command === '' ? path : command.slice(0, maxCommandChars),
    isContained,
    pool,
    poolProblem,
    runnable: states.map(({ runnable }) => runnable),
    machineRunnable: states.map(({ machineRunnable }) => machineRunnable),
    machineCores: cpus().length,
    mainShare: states.filter(({ isMainRunnable }) => isMainRunnable).length / states.length,
    allowedCores: countOf(/^Cpus_allowed_list:\s*(\S+)$/m.exec(status)?.[1] ?? ''),
    ownBytes: bytesIn(status, 'RssAnon') + bytesIn(status, 'VmSwap'),
    quota: since(before, quotaOf(folder)),
    isStopped: /^[tT]$/.test(readStat(`${folder}/task/${pid}`)?.state ?? ''),
    threads: seenThreads(first, last, youngBytes),
    transactions: transactionsBetween(first, last),
    poolWaitMs: last.find(({ thread }) => thread === 0)?.stats?.process?.poolWaitMs,
    heapLimit: heapLimitFromOutside(pid, folder),
    openDescriptors: namesIn(`${folder}/fd`).length,
    maxDescriptors: most === undefined ? Number.POSITIVE_INFINITY : Number(most),
  };
}

interface Many {
  readonly pool: readonly BlockingPoolReading[];
  readonly poolProblem: string;
  readonly states: readonly States[];
}

/** Samples pool and threads for a second. */
async function sampleRepeatedly(pid: number, folder: string): Promise<Many> {
  const pool: BlockingPoolReading[] = [];
  const states: States[] = [];
  let poolProblem = '';
  const startMs = performance.now();
  while (performance.now() - startMs < samplingMs) {
    if (poolProblem === '') {
      try {
        pool.push(readBlockingPool(pid));
      } catch (error) {
        if (!hasCode(error, 'THREADPOOL_UNREADABLE')) throw error;
        poolProblem = messageOf(error);
      }
    }
    states.push(statesOf(pid, folder));
    await sleep(samplePauseMs);
  }
  return { pool, poolProblem, states };
}

/** Combines the polls before and after that second. */
function seenThreads(
  first: readonly PolledThread[],
  last: readonly PolledThread[],
  youngBytes: number,
): SeenThread[] {
  return last.map(({ thread, mayBlock, stats }) => {
    const before = first.find((each) => each.thread === thread)?.stats;
    const known = stats ?? before ?? { thread, sources: [] };
    return {
      thread,
      role: roleOf(known),
      isSilent: stats === undefined && !mayBlock,
      lag: mayBlock ? undefined : stats?.loop.lag,
      heap: stats && {
        usedBytes: Math.min(stats.heap.usedBytes, before?.heap.usedBytes ?? Infinity),
        limitBytes: stats.heap.limitBytes,
        youngBytes,
      },
    };
  });
}

/** The counts of `after` since `before`. */
function since(before: CpuQuota | undefined, after: CpuQuota | undefined): CpuQuota | undefined {
  if (after === undefined) return undefined;
  const { cores, periods, halts } = after;
  if (before === undefined) return { cores, periods: 0, halts: 0 };
  return { cores, periods: periods - before.periods, halts: halts - before.halts };
}

interface States {
  readonly runnable: number;
  readonly isMainRunnable: boolean;
  readonly machineRunnable: number;
}

/**
 * Counts runnable threads: those that run or wait for a core. Not CPU times, which depend on the load of the
 * machine.
 */
function statesOf(pid: number, folder: string): States {
  const runnable = namesIn(`${folder}/task`).filter((name) => {
    return readStat(`${folder}/task/${name}`)?.state === 'R';
  });
  // "load load load runnable/all last": the thread that reads this is one of them.
  const all = Number(/ (\d+)\/\d+ /.exec(textOf('/proc/loadavg'))?.[1] ?? 1);
  const isMainRunnable = runnable.includes(String(pid));
  return { runnable: runnable.length, isMainRunnable, machineRunnable: all - 1 };
}

/** Counts the cores of a list such as `0-2,5`. */
function countOf(list: string): number {
  return list
    .split(',')
    .filter((range) => range !== '')
    .map((range) => range.split('-').map(Number))
    .reduce((sum, [first = 0, last = first]) => sum + last - first + 1, 0);
}
