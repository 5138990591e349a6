// The row of a pool and those of its workers, from its stats at two looks.

import type { ThreadStats } from '../agent/index.js';
import { type Processes, perSecond, type Rate, total } from './rates.js';
import { numberIn, objectsIn, sourcesOf, textIn } from './told.js';
import type { PoolView, WorkerView } from './view-types.js';

interface ParsedWorker {
  readonly id: number;
  readonly kind: string;
  /** `undefined` for a thread: it is in the process of its pool. */
  readonly pid: number | undefined;
  readonly state: string;
  readonly tasksInFlight: number;
  readonly tasksDone: number;
  readonly memory: ParsedMemory | undefined;
}

interface ParsedMemory {
  /** By the worker's own clock. */
  readonly atMs: number;
  readonly heapUsedBytes: number;
  readonly heapLimitBytes: number;
  readonly gcMs: number;
}

/** What `pool.stats()` returns, as far as it is shown. */
export type ParsedPool = Omit<
  PoolView,
  keyof At | 'busyWorkers' | `${string}PerSecond` | 'workers'
> & {
  readonly workers: readonly ParsedWorker[];
  readonly completedTasks: number;
};

type At = Pick<PoolView, 'pid' | 'thread' | 'id' | 'isSilent'>;

/** Of what another version may tell, what can be read. */
export function parsePool(told: unknown): ParsedPool {
  const { waited, ran }: { waited?: unknown; ran?: unknown } = Object(told);
  return {
    channel: textIn(told, 'channel'),
    workers: objectsIn(told, 'workers').map(parseWorker),
    startedWorkers: numberIn(told, 'startedWorkers'),
    endedWorkers: numberIn(told, 'exitedWorkers'),
    lostWorkers: numberIn(told, 'lostWorkers'),
    waitingTasks: numberIn(told, 'waitingTasks'),
    runningTasks: numberIn(told, 'runningTasks'),
    completedTasks: numberIn(told, 'completedTasks'),
    failedTasks: numberIn(told, 'failedTasks'),
    waitP50Ms: numberIn(waited, 'p50Ms'),
    waitP99Ms: numberIn(waited, 'p99Ms'),
    runP50Ms: numberIn(ran, 'p50Ms'),
    runP99Ms: numberIn(ran, 'p99Ms'),
  };
}

function parseWorker(told: object): ParsedWorker {
  const kind = textIn(told, 'kind');
  const pid = numberIn(told, 'pid');
  return {
    id: numberIn(told, 'id'),
    kind,
    pid: kind === 'process' && pid > 0 ? pid : undefined,
    state: textIn(told, 'state'),
    tasksInFlight: numberIn(told, 'tasksInFlight'),
    tasksDone: numberIn(told, 'tasksDone'),
    memory: parseMemory(told),
  };
}

function parseMemory(told: object): ParsedMemory | undefined {
  const { memory }: { memory?: unknown } = Object(told);
  const { heap, gc }: { heap?: unknown; gc?: unknown } = Object(memory);
  if (heap === undefined || gc === undefined) return undefined;
  return {
    atMs: numberIn(memory, 'atMs'),
    heapUsedBytes: numberIn(heap, 'usedBytes'),
    heapLimitBytes: numberIn(heap, 'limitBytes'),
    gcMs: total(Object.values(Object(gc)).map((each) => numberIn(each, 'totalMs'))) ?? 0,
  };
}

/** Workers of all pools of a thread that are processes. */
export function processWorkers(
  thread: ThreadStats,
): { readonly id: number; readonly pid: number }[] {
  return sourcesOf(thread, 'pool').flatMap(({ stats }) =>
    parsePool(stats).workers.flatMap(({ id, pid }) => (pid === undefined ? [] : [{ id, pid }])),
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
  { cpuShareOf, rssBytesOf }: Processes,
): WorkerView {
  const { memory, ...shown } = worker;
  const { pid } = worker;
  return {
    ...shown,
    tasksPerSecond: rate(worker.tasksDone, last?.tasksDone),
    cpuShare: pid === undefined ? undefined : cpuShareOf(pid),
    rssBytes: pid === undefined ? undefined : rssBytesOf(pid),
    heapUsedBytes: memory?.heapUsedBytes,
    heapLimitBytes: memory?.heapLimitBytes,
    gcShare: gcShareOf(memory, last?.memory),
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
