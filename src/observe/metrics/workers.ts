// Workers of a program with the memory that they reported last. Each has a slot, a number that is reused
// after its end: workers come and go, and time series by pid would pile up.

import type { ThreadStats } from '../../agent/index.js';
import type { WorkerSample } from '../../pool/index.js';
import { partitionKinds } from '../parse-stats.js';
import { poolsOf } from './sources.js';

type WorkerMemory = NonNullable<WorkerSample['memory']>;

export interface ThreadPlace {
  readonly pid: number;
  readonly thread: number;
}

export interface WorkerReading {
  readonly slot: number;
  /** `undefined` for a thread, and for a worker on another machine. */
  readonly pid: number | undefined;
  /** True: `pid` is the process outside of a partition, and those inside are below it. */
  readonly isPartition: boolean;
  /** `undefined`: not reported yet. */
  readonly memory: WorkerMemory | undefined;
}

interface KnownWorker extends WorkerReading {
  /** Threads that have it in a pool, or had it in their last answer and are silent now. */
  readonly owners: ReadonlySet<string>;
}

/**
 * Workers of the last reading. The key is the pid of a process, or the owner and number of another worker.
 */
const known = new Map<string, KnownWorker>();

/**
 * All workers in the pools of these threads; a shared worker is in the pools of several loops. Workers of
 * `silent` threads are kept as they were, so that no slot is reused while a loop is blocked.
 */
export function workerReadings(
  threads: readonly ThreadStats[],
  silent: readonly ThreadPlace[] = [],
): WorkerReading[] {
  const reported = poolsOf(threads).flatMap(({ pid, thread, stats: { workers = [] } }) =>
    workers.map((worker) => {
      const isPartition = partitionKinds.has(worker.kind);
      const ofProcess = hasProcess(worker.kind) ? worker.pid : undefined;
      const key = ofProcess === undefined ? `${pid}.${thread}.${worker.id}` : String(ofProcess);
      return {
        key,
        owner: `${pid}.${thread}`,
        pid: ofProcess,
        isPartition,
        memory: memoryIn(worker),
      };
    }),
  );
  const quiet = new Set(silent.map(({ pid, thread }) => `${pid}.${thread}`));
  const keys = new Set(reported.map(({ key }) => key));
  for (const [key, worker] of known) {
    const owners = new Set([...worker.owners].filter((owner) => quiet.has(owner)));
    if (keys.has(key) || owners.size > 0) known.set(key, { ...worker, owners });
    else known.delete(key);
  }
  for (const { key, owner, pid, isPartition, memory } of reported) {
    const before = known.get(key);
    known.set(key, {
      slot: before?.slot ?? freeSlot(),
      pid,
      isPartition,
      memory: newerOf(before?.memory, memory),
      owners: new Set(before?.owners).add(owner),
    });
  }
  return [...known.values()];
}

/** Pids of worker processes. */
export function workerPids(threads: readonly ThreadStats[]): Set<number> {
  const workers = poolsOf(threads).flatMap(({ stats }) => stats.workers ?? []);
  return new Set(workers.flatMap(({ kind, pid }) => (hasProcess(kind) ? (pid ?? []) : [])));
}

function hasProcess(kind: string): boolean {
  return kind === 'process' || partitionKinds.has(kind);
}

function freeSlot(): number {
  const taken = new Set([...known.values()].map(({ slot }) => slot));
  let slot = 1;
  while (taken.has(slot)) slot += 1;
  return slot;
}

/**
 * Returns the newer report: parents of one worker get its reports at different times, and counters must not
 * fall.
 */
function newerOf(one: WorkerMemory | undefined, other: WorkerMemory | undefined) {
  if (one === undefined || other === undefined) return one ?? other;
  return other.atMs < one.atMs ? one : other;
}

/** Reads memory from stats of any version; `undefined`: a part is missing. */
function memoryIn({ memory }: WorkerSample): WorkerMemory | undefined {
  const { atMs, heap, gc }: Partial<WorkerMemory> = Object(memory);
  return atMs === undefined || heap === undefined || gc === undefined
    ? undefined
    : { atMs, heap, gc };
}
