// Shapes of stats from another process, possibly of another version. Missing fields are left out by samplers;
// fields of another type are removed here.

import type { SourceKind } from './stats.js';

/**
 * The type of a value, the shape of all items of a list, or the shapes of the fields of an object. `any`
 * passes unchecked: its sampler checks it.
 */
type Shape =
  | 'number'
  | 'string'
  | 'boolean'
  | 'any'
  | readonly [Shape]
  | { readonly [name: string]: Shape };

/**
 * The part of `value` that has this shape; `undefined`: none. Numbers are finite; other fields are left out.
 */
export function matching(shape: Shape, value: unknown): unknown {
  if (shape === 'any') return value;
  if (shape === 'number') return Number.isFinite(value) ? value : undefined;
  if (typeof shape === 'string') return typeof value === shape ? value : undefined;
  if (isList(shape)) {
    if (!Array.isArray(value)) return undefined;
    return value.map((item) => matching(shape[0], item)).filter((item) => item !== undefined);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  const fields = Object.entries(shape).map(([name, each]) => [
    name,
    matching(each, Reflect.get(value, name)),
  ]);
  return Object.fromEntries(fields.filter(([, field]) => field !== undefined));
}

/** True: `value` has the whole shape. */
export function hasShape(shape: Shape, value: unknown): boolean {
  if (typeof shape === 'string' || isList(shape)) return matching(shape, value) !== undefined;
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(shape).every(([name, each]) => hasShape(each, Reflect.get(value, name)));
}

function isList(shape: Shape): shape is readonly [Shape] {
  return Array.isArray(shape);
}

const numbers = <Name extends string>(...names: Name[]): Record<string, Shape> =>
  Object.fromEntries(names.map((name) => [name, 'number' as const]));

const pauses = numbers('count', 'totalMs', 'maxMs');

const gc = { minor: pauses, major: pauses, incremental: pauses, weakCallbacks: pauses } as const;

const heap = numbers('usedBytes', 'totalBytes', 'limitBytes', 'externalBytes');

const loopTimes = numbers('idleMs', 'activeMs');

/** Fields of every agent. */
export const neededShape = {
  ...numbers('pid', 'thread', 'uptimeMs'),
  title: 'string',
  loop: loopTimes,
  heap,
  gc,
  sources: [{}],
} as const satisfies Shape;

/** All fields, also those that may be missing. */
export const threadShape: Shape = {
  ...neededShape,
  node: 'string',
  version: 'string',
  loop: { ...loopTimes, lag: numbers('p50Ms', 'p99Ms', 'maxMs', 'worstMs') },
  captures: numbers('count', 'totalMs'),
  process: numbers('rssBytes', 'userMs', 'systemMs', 'poolWaitMs'),
};

const durations: Shape = {
  ...numbers('count', 'sumMs', 'meanMs', 'p50Ms', 'p95Ms', 'p99Ms', 'maxMs'),
  buckets: [['number']],
};
const worker: Shape = {
  ...numbers('id', 'pid', 'tasksInFlight', 'tasksDone'),
  kind: 'string',
  state: 'string',
  memory: { atMs: 'number', heap, gc },
};
const loop: Shape = {
  ...numbers('process', 'pid', 'generation', 'ageMs', 'rssBytes', 'loop', 'utilization'),
  ...numbers('openConnections', 'connections', 'requestsInFlight', 'requests', 'bytesWritten'),
  ...numbers('lagMs', 'blockedMs', 'turnedAway', 'takenAway', 'takenOver'),
  state: 'string',
  lastExit: 'string',
  acceptsItself: 'boolean',
};

/** Counts of one worker within a slice. */
export const workerSliceShape: Shape = numbers('worker', 'tasks', 'failed', 'busyMs');
export const spanShape: Shape = {
  ...numbers('task', 'worker', 'startMs', 'endMs'),
  name: 'string',
  isFailed: 'boolean',
};

export const sourceShapes: Readonly<Record<SourceKind, Shape>> = {
  pool: {
    ...numbers('startedWorkers', 'exitedWorkers', 'lostWorkers', 'restarts'),
    ...numbers('waitingTasks', 'runningTasks'),
    ...numbers('completedTasks', 'failedTasks', 'sentBytes', 'receivedBytes'),
    partition: numbers('memoryMb', 'cpuPercent', 'maxProcesses', 'fileMb', 'resultMb', 'outputMb'),
    overLimit: numbers('memory', 'tasks', 'output', 'result', 'data', 'protocol'),
    channel: 'string',
    workers: [worker],
    waited: durations,
    ran: durations,
  },
  bus: numbers('sent', 'received', 'undelivered', 'dropped', 'failed'),
  stm: {
    ...numbers('threads', 'memoryBytes', 'commits', 'conflicts', 'thefts', 'recoveries'),
    ...numbers('sleeps', 'space'),
    contended: [{ name: 'string', kind: 'string', conflicts: 'number' }],
  },
  loops: { loops: [loop], deployments: [{ id: 'number', name: 'string' }] },
  server: { app: 'string', addresses: 'any', lostProcesses: 'number', loops: [loop] },
  servedLoop: numbers('server', 'process', 'loop'),
};
