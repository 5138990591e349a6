// Table of all metrics: name, type, unit, help and how to read each from a program. Prometheus
// (prometheus.ts) and OpenTelemetry (opentelemetry/) are made from it; docs/metrics.md is checked against it.
// Names and units follow OpenTelemetry; Prometheus names are derived: the unit is appended, and `_total` for
// a counter. Labels are few and have few values: no function names, no addresses.
// Long (over 400 lines), because it is one table.

import type { ThreadStats } from '../../agent/index.js';
import type { PoolSample } from '../../pool/index.js';
import {
  busScope,
  define,
  defineDurations,
  type MetricDefinition,
  memoryScope,
  poolScope,
  processScope,
  servedScope,
  serverScope,
  threadScope,
  upScope,
  type Values,
  workerScope,
} from './scopes.js';
import type { Source } from './sources.js';
import type { WorkerReading } from './workers.js';

const seconds = (ms: number | undefined): number | undefined =>
  ms === undefined ? undefined : ms / 1000;

const workerStates = ['starting', 'ready', 'retiring', 'closing'] as const;

function workersByState({ stats: { workers } }: Source<PoolSample>): Values | undefined {
  if (workers === undefined) return undefined;
  const count = (state: string): number =>
    workers.filter((worker) => worker.state === state).length;
  return Object.fromEntries(workerStates.map((state) => [state, count(state)]));
}

function gcBy(value: 'count' | 'totalMs', gc: ThreadStats['gc'] | undefined): Values {
  return Object.fromEntries(Object.entries(gc ?? {}).map(([kind, each]) => [kind, each[value]]));
}

type HeapStat = keyof ThreadStats['heap'];

const heapOf =
  (value: HeapStat) =>
  ({ memory }: WorkerReading): number | undefined =>
    memory?.heap[value];

function secondsBy(values: Values): Values {
  return Object.fromEntries(Object.entries(values).map(([key, ms]) => [key, seconds(ms)]));
}

export const metricDefinitions: readonly MetricDefinition[] = [
  ...define(upScope, [
    [
      'thread.up',
      'gauge',
      '{thread}',
      '1 for a thread that answers, 0 for one that is silent',
      (of) => Number(of.isUp),
    ],
  ]),
  ...define(threadScope, [
    [
      'loop.active',
      'counter',
      's',
      'Time in which the event loop was active',
      (of) => seconds(of.loop.activeMs),
    ],
    [
      'loop.idle',
      'counter',
      's',
      'Time in which the event loop was idle',
      (of) => seconds(of.loop.idleMs),
    ],
    [
      'loop.lag',
      'gauge',
      's',
      'Delay of timers in the last second; quantile 1 is the longest',
      ({ loop: { lag } }) => secondsBy({ '0.5': lag?.p50Ms, '0.99': lag?.p99Ms, '1': lag?.maxMs }),
      'quantile',
    ],
    [
      'loop.lag.max',
      'gauge',
      's',
      'Longest delay of timers in the last minute',
      (of) => seconds(of.loop.lag?.worstMs),
    ],
    ['heap.used', 'gauge', 'By', 'Heap of V8 in use', (of) => of.heap.usedBytes],
    ['heap.total', 'gauge', 'By', 'Heap that V8 has reserved', (of) => of.heap.totalBytes],
    [
      'heap.limit',
      'gauge',
      'By',
      'Heap limit at which V8 ends the process',
      (of) => of.heap.limitBytes,
    ],
    [
      'heap.external',
      'gauge',
      'By',
      'Memory outside of the heap that its objects own',
      (of) => of.heap.externalBytes,
    ],
    [
      'gc.pauses',
      'counter',
      '{pause}',
      'Pauses of the garbage collector',
      (of) => gcBy('count', of.gc),
      'kind',
    ],
    [
      'gc.pause',
      'counter',
      's',
      'Time in pauses of the garbage collector',
      (of) => secondsBy(gcBy('totalMs', of.gc)),
      'kind',
    ],
    [
      'captures',
      'counter',
      '{snapshot}',
      'Snapshots of functions and what they captured',
      (of) => of.captures?.count,
    ],
    [
      'capture',
      'counter',
      's',
      'Time taken by snapshots of functions',
      (of) => seconds(of.captures?.totalMs),
    ],
  ]),
  ...define(processScope, [
    [
      'process.cpu',
      'counter',
      's',
      'CPU time of all threads of a process',
      ({ cpu }) => secondsBy({ user: cpu?.userMs, system: cpu?.systemMs }),
      'mode',
    ],
    ['process.resident', 'gauge', 'By', 'Resident memory of a process', (of) => of.residentBytes],
    [
      'blocking_pool.threads',
      'gauge',
      '{thread}',
      "Threads of libuv's pool",
      (of) => of.blockingPool.threads,
    ],
    [
      'blocking_pool.waiting',
      'gauge',
      '{job}',
      "Jobs that wait for a thread of libuv's pool",
      (of) => of.blockingPool.waitingJobs,
    ],
    [
      'blocking_pool.wait',
      'gauge',
      's',
      "Wait of a probe job for a thread of libuv's pool, when jobs cannot be counted",
      (of) => seconds(of.blockingPool.waitMs),
    ],
  ]),
  ...define(workerScope, [
    ['worker.heap.used', 'gauge', 'By', 'Heap of V8 in use in a worker', heapOf('usedBytes')],
    [
      'worker.heap.limit',
      'gauge',
      'By',
      'Heap limit at which V8 ends a worker',
      heapOf('limitBytes'),
    ],
    [
      'worker.heap.external',
      'gauge',
      'By',
      'Memory outside of the heap of a worker that its objects own',
      heapOf('externalBytes'),
    ],
    [
      'worker.gc.pauses',
      'counter',
      '{pause}',
      'Pauses of the garbage collector of a worker',
      ({ memory }) => gcBy('count', memory?.gc),
      'kind',
    ],
    [
      'worker.gc.pause',
      'counter',
      's',
      'Time in pauses of the garbage collector of a worker',
      ({ memory }) => secondsBy(gcBy('totalMs', memory?.gc)),
      'kind',
    ],
  ]),
  ...define(poolScope, [
    [
      'tasks.waiting',
      'gauge',
      '{task}',
      'Tasks that wait for a worker',
      ({ stats }) => stats.waitingTasks,
    ],
    [
      'tasks.running',
      'gauge',
      '{task}',
      'Tasks that workers have not answered yet',
      ({ stats }) => stats.runningTasks,
    ],
    [
      'tasks.completed',
      'counter',
      '{task}',
      'Tasks that completed with a result',
      ({ stats }) => stats.completedTasks,
    ],
    [
      'tasks.failed',
      'counter',
      '{task}',
      'Tasks that failed, or were given up',
      ({ stats }) => stats.failedTasks,
    ],
    [
      'tasks.handed',
      'counter',
      '{task}',
      'Tasks handed to a worker',
      ({ stats }) => stats.waited?.count,
    ],
    [
      'tasks.answered',
      'counter',
      '{task}',
      'Tasks that a worker answered',
      ({ stats }) => stats.ran?.count,
    ],
  ]),
  ...defineDurations(poolScope, [
    [
      'task.wait',
      'Time from the call of a task to its hand-over to a worker',
      ({ stats }) => stats.waited,
    ],
    ['task.run', 'Run time of tasks in workers', ({ stats }) => stats.ran],
  ]),
  ...define(poolScope, [
    ['workers', 'gauge', '{worker}', 'Workers by state', workersByState, 'state'],
    [
      'workers.started',
      'counter',
      '{worker}',
      'Workers that were started',
      ({ stats }) => stats.startedWorkers,
    ],
    [
      'workers.exited',
      'counter',
      '{worker}',
      'Workers that have ended',
      ({ stats }) => stats.exitedWorkers,
    ],
    [
      'workers.lost',
      'counter',
      '{worker}',
      'Workers that ended unexpectedly',
      ({ stats }) => stats.lostWorkers,
    ],
    [
      'workers.over_limit',
      'counter',
      '{worker}',
      'Workers in partitions that were ended for a limit',
      ({ stats }) => stats.overLimit && { ...stats.overLimit },
      'limit',
    ],
    [
      'worker.restarts',
      'counter',
      '{restart}',
      'Starts of workers that were delayed after a failed start',
      ({ stats }) => stats.restarts,
    ],
    [
      'transfer.sent',
      'counter',
      'By',
      'Sent to workers: calls, code and shared memory',
      ({ stats }) => stats.sentBytes,
    ],
    [
      'transfer.received',
      'counter',
      'By',
      'Received from workers: results and shared memory',
      ({ stats }) => stats.receivedBytes,
    ],
  ]),
  ...define(busScope, [
    [
      'bus.messages.sent',
      'counter',
      '{message}',
      'Messages sent in this loop',
      ({ stats }) => stats.sent,
    ],
    [
      'bus.messages.received',
      'counter',
      '{message}',
      'Messages handed to handlers in this loop',
      ({ stats }) => stats.received,
    ],
    [
      'bus.messages.undelivered',
      'counter',
      '{message}',
      'Messages to an address without a consumer',
      ({ stats }) => stats.undelivered,
    ],
    [
      'bus.messages.dropped',
      'counter',
      '{message}',
      'Messages dropped because too many waited',
      ({ stats }) => stats.dropped,
    ],
    [
      'bus.handlers.failed',
      'counter',
      '{error}',
      'Errors of handlers that no requester got',
      ({ stats }) => stats.failed,
    ],
  ]),
  ...define(memoryScope, [
    [
      'stm.threads',
      'gauge',
      '{thread}',
      'Threads that take part in transactional memory',
      ({ stats }) => stats.threads,
    ],
    [
      'stm.memory',
      'gauge',
      'By',
      'Memory that variables and collections have taken so far',
      ({ stats }) => stats.memoryBytes,
    ],
    [
      'stm.commits',
      'counter',
      '{transaction}',
      'Transactions that set something',
      ({ stats }) => stats.commits,
    ],
    [
      'stm.conflicts',
      'counter',
      '{attempt}',
      'Attempts that ran again because another transaction changed what they had read',
      ({ stats }) => stats.conflicts,
    ],
    [
      'stm.thefts',
      'counter',
      '{commit}',
      'Commits that did not go on and were undone by another thread',
      ({ stats }) => stats.thefts,
    ],
    [
      'stm.recoveries',
      'counter',
      '{commit}',
      'Commits of threads that ended in the middle, undone or completed by others',
      ({ stats }) => stats.recoveries,
    ],
    [
      'stm.sleeps',
      'counter',
      '{transaction}',
      'Times that a transaction slept until something changed',
      ({ stats }) => stats.sleeps,
    ],
  ]),
  ...define(serverScope, [
    [
      'server.processes',
      'gauge',
      '{process}',
      'Processes of a server',
      ({ stats }) => stats.loops && new Set(stats.loops.map(({ pid }) => pid)).size,
    ],
    [
      'server.processes.lost',
      'counter',
      '{process}',
      'Processes that ended unexpectedly, lost a loop, or failed to start',
      ({ stats }) => stats.lostProcesses,
    ],
  ]),
  ...define(servedScope, [
    [
      'connections.open',
      'gauge',
      '{connection}',
      'Open connections of a loop',
      (of) => of.openConnections,
    ],
    [
      'connections',
      'counter',
      '{connection}',
      'Connections that a loop received',
      (of) => of.connections,
    ],
    [
      'connections.refused',
      'counter',
      '{connection}',
      'Connections answered with 503 for all loops of a process',
      (of) => of.turnedAway,
    ],
    [
      'connections.taken_away',
      'counter',
      '{connection}',
      'Kept-alive connections that left a loop while it was blocked',
      (of) => of.takenAway,
    ],
    [
      'connections.taken_over',
      'counter',
      '{connection}',
      'Connections that a loop got which had left a blocked one',
      (of) => of.takenOver,
    ],
    [
      'requests.in_flight',
      'gauge',
      '{request}',
      'HTTP requests that wait for their answer',
      (of) => of.requestsInFlight,
    ],
    ['requests', 'counter', '{request}', 'HTTP requests that were answered', (of) => of.requests],
    [
      'written',
      'counter',
      'By',
      'Bytes written to connections that were closed',
      (of) => of.bytesWritten,
    ],
    [
      'server.loop.lag',
      'gauge',
      's',
      'Delay of the last ping of the listener thread to a loop',
      (of) => seconds(of.lagMs),
    ],
    [
      'server.loop.blocked',
      'gauge',
      's',
      'Time since the last heartbeat of a loop that is blocked',
      (of) => seconds(of.blockedMs),
    ],
    [
      'server.loop.utilization',
      'gauge',
      '1',
      'Share of the last second in which a loop was active',
      (of) => of.utilization,
    ],
  ]),
];

const suffixes: Readonly<Record<string, string>> = { s: '_seconds', By: '_bytes', '1': '_ratio' };

/** Name in Prometheus. */
export function prometheusName({ name, type, unit }: MetricDefinition): string {
  const base = `manycore_${name.replaceAll('.', '_')}${suffixes[unit] ?? ''}`;
  return type === 'counter' ? `${base}_total` : base;
}

/** Name in OpenTelemetry. */
export function openTelemetryName({ name }: MetricDefinition): string {
  return `manycore.${name}`;
}
