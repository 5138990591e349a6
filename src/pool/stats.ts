// Statistics of a pool: the result of `pool.stats()`, and the sample for its agent.

import type { ChannelKind } from '../channels/index.js';
import type { WorkerLimit } from '../lib/index.js';
import {
  type GrantedCores,
  grantedCores,
  type ShownKind,
  type WorkerMemory,
} from '../worker/index.js';
import type { Dispatcher } from './dispatcher.js';
import type { HistogramSummary } from './histogram.js';
import { budget } from './workers/budget.js';
import type { PoolHealth } from './workers/starts.js';
import type { TaskWorker, WorkerManager } from './workers/worker-manager.js';

export interface WorkerStats {
  readonly id: number;
  readonly kind: ShownKind;
  /** For a partition the process outside of it; all others of it are below that one. */
  readonly pid: number | undefined;
  readonly state: 'starting' | 'ready' | 'retiring' | 'closing' | 'ended';
  readonly tasksInFlight: number;
  readonly tasksDone: number;
}

/**
 * Sample of a worker for an agent: more than `stats()`, because they were requested from the worker
 * before.
 */
export interface WorkerSample extends WorkerStats {
  /** Last report of the worker; `undefined` until then. */
  readonly memory: WorkerMemory | undefined;
}

/** Sample of a pool for an agent. */
export interface PoolSample extends PoolStats {
  readonly workers: readonly WorkerSample[];
}

/** Limits of a partition: the options that are numbers. */
export interface PartitionLimits
  extends Readonly<
    Record<'memoryMb' | 'cpuPercent' | 'maxProcesses' | 'fileMb' | 'resultMb' | 'outputMb', number>
  > {
  /** The kernel of a virtual machine; `undefined` for a sandbox. */
  readonly engine: 'uml' | 'gvisor' | undefined;
}

export interface PoolStats {
  readonly channel: ChannelKind;
  /** Cores granted to this process, and how many of them workers of all pools use now. */
  readonly cores: GrantedCores & { readonly used: number };
  readonly workers: readonly WorkerStats[];
  /** Limits of each of the workers; `undefined` in a pool without partitions. */
  readonly partition: PartitionLimits | undefined;
  readonly startedWorkers: number;
  readonly exitedWorkers: number;
  /** Exited workers that were neither closed nor ended by the pool, as after a timeout. */
  readonly lostWorkers: number;
  /** Workers in partitions that were ended for a limit, by its name; `undefined` in a pool without partitions. */
  readonly overLimit: Readonly<Record<WorkerLimit, number>> | undefined;
  /** Starts that were delayed, because a worker did not start or ended before it had a task. */
  readonly restarts: number;
  /** Health of the starts of workers. */
  readonly health: PoolHealth;
  readonly waitingTasks: number;
  /** Tasks in workers without an answer, waiting ones included. */
  readonly runningTasks: number;
  readonly completedTasks: number;
  readonly failedTasks: number;
  /** Bytes of frames and shared memory sent to the workers. */
  readonly sentBytes: number;
  readonly receivedBytes: number;
  /** Time from the call to the hand-over; since the last `resetTimes()`, as `ran`. */
  readonly waited: HistogramSummary;
  /** Time in the worker. */
  readonly ran: HistogramSummary;
}

export function poolStats(
  channel: ChannelKind,
  manager: WorkerManager,
  dispatcher: Dispatcher,
): PoolStats {
  const { waited, ran } = dispatcher;
  return {
    channel,
    cores: { ...grantedCores(), used: budget().usedCores },
    workers: manager.workers.map(workerStats),
    partition: manager.partition,
    ...manager.counts,
    overLimit: manager.overLimit && { ...manager.overLimit },
    restarts: manager.restarts,
    health: manager.health,
    waitingTasks: dispatcher.waitingTasks,
    runningTasks: dispatcher.runningTasks,
    completedTasks: dispatcher.completedTasks,
    failedTasks: dispatcher.failedTasks,
    sentBytes: manager.bytes('sentBytes'),
    receivedBytes: manager.bytes('receivedBytes'),
    waited: waited.summary(),
    ran: ran.summary(),
  };
}

export function poolSample(
  channel: ChannelKind,
  manager: WorkerManager,
  dispatcher: Dispatcher,
): PoolSample {
  const workers = manager.workers.map((worker): WorkerSample => {
    return { ...workerStats(worker), memory: worker.memory };
  });
  const { waited, ran } = dispatcher;
  const stats = poolStats(channel, manager, dispatcher);
  return { ...stats, workers, waited: waited.total(), ran: ran.total() };
}

function workerStats(worker: TaskWorker): WorkerStats {
  const { id, shownKind: kind, pid, inFlight, tasksDone } = worker;
  const state = worker.isRetiring ? 'retiring' : worker.state;
  const tasksInFlight = worker.state === 'starting' ? 0 : inFlight;
  return { id, kind, pid, state, tasksInFlight, tasksDone };
}
