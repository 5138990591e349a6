// Rows of a pool and of its workers, from the stats of two polls.

import type { ThreadStats } from '../../agent/index.js';
import { numberIn, objectsIn, partitionKinds, sourcesOf, textIn } from '../parse-stats.js';
import { type Processes, perSecond, type Rate, total } from './rates.js';
import type { PartitionView, PoolView, WorkerView } from './view-types.js';

const mib = 2 ** 20;
/** Above are `manycore-enter run` and the two processes of bubblewrap, whatever names those below take. */
const insideDepth = 3;

interface ParsedWorker {
  readonly id: number;
  readonly kind: string;
  /** `undefined`: a thread in the process of its pool. */
  readonly pid: number | undefined;
  readonly state: string;
  readonly tasksInFlight: number;
  readonly tasksDone: number;
  readonly memory: ParsedMemory | undefined;
}

interface ParsedMemory {
  /** Time by the worker's own clock. */
  readonly atMs: number;
  readonly heapUsedBytes: number;
  readonly heapLimitBytes: number;
  readonly gcMs: number;
}

/** The displayed part of `pool.stats()`. */
export type ParsedPool = Omit<
  PoolView,
  keyof At | 'busyWorkers' | `${string}PerSecond` | 'workers'
> & {
  readonly workers: readonly ParsedWorker[];
  readonly completedTasks: number;
};

type At = Pick<PoolView, 'pid' | 'thread' | 'id' | 'isSilent'>;

/** Parses the stats of a pool, possibly of another version: missing numbers are 0. */
export function parsePool(value: unknown): ParsedPool {
  const { waited, ran }: { waited?: unknown; ran?: unknown } = Object(value);
  return {
    channel: textIn(value, 'channel'),
    workers: objectsIn(value, 'workers').map(parseWorker),
    startedWorkers: numberIn(value, 'startedWorkers'),
    endedWorkers: numberIn(value, 'exitedWorkers'),
    lostWorkers: numberIn(value, 'lostWorkers'),
    waitingTasks: numberIn(value, 'waitingTasks'),
    runningTasks: numberIn(value, 'runningTasks'),
    completedTasks: numberIn(value, 'completedTasks'),
    failedTasks: numberIn(value, 'failedTasks'),
    waitP50Ms: numberIn(waited, 'p50Ms'),
    waitP99Ms: numberIn(waited, 'p99Ms'),
    runP50Ms: numberIn(ran, 'p50Ms'),
    runP99Ms: numberIn(ran, 'p99Ms'),
    partition: parsePartition(value),
  };
}

function parsePartition(value: unknown): PartitionView | undefined {
  const { partition }: { partition?: unknown } = Object(value);
  if (partition === undefined) return undefined;
  return {
    memoryBytes: numberIn(partition, 'memoryMb') * mib,
    cpuShare: numberIn(partition, 'cpuPercent') / 100,
    maxProcesses: numberIn(partition, 'maxProcesses'),
  };
}

function parseWorker(value: object): ParsedWorker {
  const kind = textIn(value, 'kind');
  const pid = numberIn(value, 'pid');
  return {
    id: numberIn(value, 'id'),
    kind,
    pid: (kind === 'process' || partitionKinds.has(kind)) && pid > 0 ? pid : undefined,
    state: textIn(value, 'state'),
    tasksInFlight: numberIn(value, 'tasksInFlight'),
    tasksDone: numberIn(value, 'tasksDone'),
    memory: parseMemory(value),
  };
}

function parseMemory(value: object): ParsedMemory | undefined {
  const { memory }: { memory?: unknown } = Object(value);
  const { heap, gc }: { heap?: unknown; gc?: unknown } = Object(memory);
  if (heap === undefined || gc === undefined) return undefined;
  return {
    atMs: numberIn(memory, 'atMs'),
    heapUsedBytes: numberIn(heap, 'usedBytes'),
    heapLimitBytes: numberIn(heap, 'limitBytes'),
    gcMs: total(Object.values(Object(gc)).map((each) => numberIn(each, 'totalMs'))) ?? 0,
  };
}

/** Workers of all pools of a thread. */
export function allWorkers(
  thread: ThreadStats,
): { readonly id: number; readonly kind: string; readonly pid: number | undefined }[] {
  return sourcesOf(thread, 'pool').flatMap(({ stats }) => parsePool(stats).workers);
}

/** Worker processes of all pools of a thread. */
export function processWorkers(
  thread: ThreadStats,
): { readonly id: number; readonly pid: number; readonly isPartition: boolean }[] {
  return allWorkers(thread).flatMap(({ id, kind, pid }) =>
    pid === undefined ? [] : [{ id, pid, isPartition: partitionKinds.has(kind) }],
  );
}

export function poolView(
  at: At,
  now: ParsedPool,
  last: ParsedPool | undefined,
  rate: Rate,
  processes: Processes,
): PoolView {
  const before = new Map(last?.workers.map((worker) => [worker.id, worker]));
  const workers = now.workers.map((worker) =>
    workerView(worker, before.get(worker.id), rate, processes),
  );
  const { completedTasks, ...shown } = now;
  return {
    ...at,
    ...shown,
    workers,
    busyWorkers: workers.filter(({ tasksInFlight }) => tasksInFlight > 0).length,
    tasksPerSecond: rate(
      completedTasks + now.failedTasks,
      last && last.completedTasks + last.failedTasks,
    ),
    failedPerSecond: rate(now.failedTasks, last?.failedTasks),
  };
}

function workerView(
  worker: ParsedWorker,
  last: ParsedWorker | undefined,
  rate: Rate,
  processes: Processes,
): WorkerView {
  const { memory, ...shown } = worker;
  return {
    ...shown,
    tasksPerSecond: rate(worker.tasksDone, last?.tasksDone),
    ...usageOf(worker, processes),
    heapUsedBytes: memory?.heapUsedBytes,
    heapLimitBytes: memory?.heapLimitBytes,
    gcShare: gcShareOf(memory, last?.memory),
  };
}

type WorkerUsage = Pick<WorkerView, 'cpuShare' | 'rssBytes' | 'inside'>;

function usageOf(
  { kind, pid }: ParsedWorker,
  { cpuShareOf, rssBytesOf, treeOf }: Processes,
): WorkerUsage {
  if (pid === undefined) return { cpuShare: undefined, rssBytes: undefined, inside: undefined };
  if (!partitionKinds.has(kind)) {
    return { cpuShare: cpuShareOf(pid), rssBytes: rssBytesOf(pid), inside: undefined };
  }
  const all = treeOf(pid).map((each) => ({
    ...each,
    cpuShare: cpuShareOf(each.pid),
    rssBytes: rssBytesOf(each.pid),
  }));
  return {
    cpuShare: total(all.map(({ cpuShare }) => cpuShare)),
    rssBytes: total(all.map(({ rssBytes }) => rssBytes)),
    inside: all
      .filter(({ depth }) => depth >= insideDepth)
      .map((each) => ({ ...each, depth: each.depth - insideDepth })),
  };
}

function gcShareOf(
  now: ParsedMemory | undefined,
  last: ParsedMemory | undefined,
): number | undefined {
  if (now === undefined || last === undefined) return undefined;
  const msPerS = perSecond(now.gcMs, last.gcMs, now.atMs - last.atMs);
  return msPerS === undefined ? undefined : Math.min(1, msPerS / 1000);
}
