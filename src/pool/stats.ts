// What `pool.stats()` returns, and what an agent tells of a pool.

import type { ChannelKind } from '../channels/index.js';
import {
  type GrantedCores,
  grantedCores,
  type WorkerKind,
  type WorkerMemory,
} from '../worker/index.js';
import { budget } from './budget.js';
import type { Dispatcher } from './dispatcher.js';
import type { HistogramSummary } from './histogram.js';
import type { PoolHealth } from './starts.js';
import type { TaskWorker } from './worker-manager.js';

export interface WorkerStats {
  readonly id: number;
  readonly kind: WorkerKind;
  readonly pid: number | undefined;
  readonly state: 'starting' | 'ready' | 'retiring' | 'closing' | 'ended';
  readonly tasksInFlight: number;
  readonly tasksDone: number;
}

/** What an agent tells of a worker: more than `stats()`, because the worker was asked before. */
export interface WorkerSample extends WorkerStats {
  /** As the worker told last; `undefined` until then. */
  readonly memory: WorkerMemory | undefined;
}

/** What an agent tells of a pool. */
export interface PoolSample extends PoolStats {
  readonly workers: readonly WorkerSample[];
}

export interface PoolStats {
  readonly channel: ChannelKind;
  /** Cores granted to this process and how many of them workers of all pools use now. */
  readonly cores: GrantedCores & { readonly used: number };
  readonly workers: readonly WorkerStats[];
  readonly startedWorkers: number;
  readonly exitedWorkers: number;
  /** Of those that exited: neither asked to leave nor ended by the pool, as after a timeout. */
  readonly lostWorkers: number;
  /** Starts that had to wait, because a worker did not start or ended before it had a task. */
  readonly restarts: number;
  /** Whether workers start. */
  readonly health: PoolHealth;
  readonly waitingTasks: number;
  /** In a worker and not answered yet, those included that wait there. */
  readonly runningTasks: number;
  readonly completedTasks: number;
  readonly failedTasks: number;
  /** Of frames and shared memory, to the workers and from them, in bytes. */
  readonly sentBytes: number;
  readonly receivedBytes: number;
  /** From the call to the hand-over; since the last `resetTimes()`, as `ran`. */
  readonly waited: HistogramSummary;
  /** In the worker. */
  readonly ran: HistogramSummary;
}

export function poolStats(channel: ChannelKind, dispatcher: Dispatcher): PoolStats {
  const { manager, waited, ran } = dispatcher;
  return {
    channel,
    cores: { ...grantedCores(), used: budget().usedCores },
    workers: manager.workers.map(workerStats),
    ...manager.counts,
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

export function poolSample(channel: ChannelKind, dispatcher: Dispatcher): PoolSample {
  const workers = dispatcher.manager.workers.map((worker): WorkerSample => {
    return { ...workerStats(worker), memory: worker.memory };
  });
  const { waited, ran } = dispatcher;
  return { ...poolStats(channel, dispatcher), workers, waited: waited.total(), ran: ran.total() };
}

function workerStats(worker: TaskWorker): WorkerStats {
  const { id, kind, pid, inFlight, tasksDone } = worker;
  const state = worker.isRetiring ? 'retiring' : worker.state;
  const tasksInFlight = worker.state === 'starting' ? 0 : inFlight;
  return { id, kind, pid, state, tasksInFlight, tasksDone };
}
