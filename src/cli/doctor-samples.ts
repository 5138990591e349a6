// A program that runs, looked at from outside for a second: its thread pool and the states of its threads
// again and again, its memory at the end. From proc(5); nothing in it changes. Only one that uses manycore
// is asked something, before and behind that second: its threads tell of their loops and heaps, which nobody
// sees from outside. Not here: what the stats mean (doctor-program.ts).

import { cpus } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type BlockingPoolReading,
  canCountJobs,
  nodeProcess,
  readBlockingPool,
} from '../blocking-pool/index.js';
import { hasCode } from '../errors.js';
import { messageOf } from '../internal/index.js';
import { type PolledThread, ProcessThreads, roleOf } from '../observe/index.js';
import { bytesIn, namesIn, readStat, textOf } from '../proc/index.js';
import { type HeapLimit, heapLimitFromOutside } from './doctor-heap-limit.js';
import { type CpuQuota, quotaOf } from './doctor-quota.js';

/** What was seen of one process of Node. */
export interface ProcessSamples {
  readonly pid: number;
  /** Its command line, or what it calls itself. */
  readonly command: string;
  /** Whether its numbers of processes are others than ours, as in a container. */
  readonly isContained: boolean;
  /** One for each look; empty where the pool cannot be seen, as `poolProblem` says. */
  readonly pool: readonly BlockingPoolReading[];
  readonly poolProblem: string;
  /**
   * How long a job waited for its pool that was begun for this; `undefined` where jobs are counted, or nobody
   * tells.
   */
  readonly poolWaitMs: number | undefined;
  /** For each look: how many of its threads ran, or could have run had a core been free. */
  readonly runnable: readonly number[];
  /** The same of the whole machine, without this process. */
  readonly machineRunnable: readonly number[];
  readonly machineCores: number;
  /** The share of the looks in which its main thread was one of them, 0 to 1. */
  readonly mainShare: number;
  /** By a signal or a debugger, at the end. */
  readonly isStopped: boolean;
  /** Those that tell of themselves; empty where it does not use manycore. */
  readonly threads: readonly SeenThread[];
  /** How many cores its main thread may run on; 0 where unknown. */
  readonly allowedCores: number;
  /** While it was looked at; `undefined` without a quota. */
  readonly quota: CpuQuota | undefined;
  /** Memory that is its own, swapped or not, in bytes: heaps, buffers, and what native code has. */
  readonly ownBytes: number;
  /** As it was started; `undefined` where that says nothing. */
  readonly heapLimit: HeapLimit | undefined;
  readonly openDescriptors: number;
  /** `Infinity` without one. */
  readonly maxDescriptors: number;
}

/** A thread that tells of itself, as it was asked last. */
export interface SeenThread {
  /** 0: the main thread. */
  readonly thread: number;
  /** `main`, `thread 2`, or in a server `loop 0.1`. */
  readonly role: string;
  /** It did not answer within a second, and is none that may block. */
  readonly isSilent: boolean;
  /** How late its timers were in the last second; `undefined` where it cannot say. */
  readonly lag: { readonly p99Ms: number; readonly maxMs: number } | undefined;
  /** `undefined` where it did not answer. */
  readonly heap: SeenHeap | undefined;
}

export interface SeenHeap {
  /** The least of two looks: what is garbage by then counts, too. */
  readonly usedBytes: number;
  readonly limitBytes: number;
}

const samplingMs = 1000;
const samplePauseMs = 25;
/** Of a command line, which may be a whole program. */
const maxCommandChars = 120;

/**
 * Resolves after a second, or three where a thread is silent. Rejects with `PROCESS_GONE`, also when it
 * ends meanwhile, with `PROCESS_REFUSED`, `PROCESS_NOT_NODE`, `PROCESS_OTHER_PID_NAMESPACE`.
 */
export async function sampleProcess(pid: number): Promise<ProcessSamples> {
  const { folder, path, isContained } = nodeProcess(pid);
  const probes = !canCountJobs(pid);
  using threads = new ProcessThreads(pid);
  const first = await threads.poll(probes); // from the answer on they measure how late their loops are
  const before = quotaOf(folder);
  const { pool, poolProblem, states } = await sampleRepeatedly(pid, folder);
  const last = await threads.poll(probes);
  nodeProcess(pid); // what has ended meanwhile was not seen
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
    threads: seenThreads(first, last),
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

/** For a second. */
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

/** What they told at the end, and before that. */
function seenThreads(first: readonly PolledThread[], last: readonly PolledThread[]): SeenThread[] {
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
      },
    };
  });
}

/** The stats of `after`, counted from `before` on. */
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
 * Not times: what they say of a program depends on what else the machine does. A thread that wants a core
 * is one that runs or could, however long it gets one.
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

/** Of a list such as `0-2,5`. */
function countOf(list: string): number {
  return list
    .split(',')
    .filter((range) => range !== '')
    .map((range) => range.split('-').map(Number))
    .reduce((sum, [first = 0, last = first]) => sum + last - first + 1, 0);
}
