// The workers of a program, and what they told of their memory last. Each has a slot, a number that the next
// one has when it has ended: workers come and go, and series by their pids would pile up.

import type { ThreadStats } from '../../agent/index.js';
import type { WorkerSample } from '../../pool/index.js';
import { poolsOf } from './sources.js';

type WorkerMemory = NonNullable<WorkerSample['memory']>;

export interface ThreadPlace {
  readonly pid: number;
  readonly thread: number;
}

export interface WorkerReading {
  readonly slot: number;
  /** `undefined` for a thread, and for one on another machine. */
  readonly pid: number | undefined;
  /** `undefined` for one that has not told yet. */
  readonly memory: WorkerMemory | undefined;
}

interface KnownWorker extends WorkerReading {
  /** Threads that have it in a pool, or had it when they told last and are silent now. */
  readonly owners: ReadonlySet<string>;
}

/**
 * Of the last reading. A process is known by its pid, another worker by who started it and its number there.
 */
const known = new Map<string, KnownWorker>();

/**
 * All workers in the pools of these threads; those that several loops share are in the pools of all of them.
 * Those of threads that are there and `silent` are as they were: a slot is not given away because a loop is
 * blocked for a while.
 */
export function workerReadings(
  threads: readonly ThreadStats[],
  silent: readonly ThreadPlace[] = [],
): WorkerReading[] {
  const reported = poolsOf(threads).flatMap(({ pid, thread, stats: { workers = [] } }) =>
    workers.map((worker) => {
      const ofProcess = worker.kind === 'process' ? worker.pid : undefined;
      const key = ofProcess === undefined ? `${pid}.${thread}.${worker.id}` : String(ofProcess);
      return { key, owner: `${pid}.${thread}`, pid: ofProcess, memory: memoryIn(worker) };
    }),
  );
  const quiet = new Set(silent.map(({ pid, thread }) => `${pid}.${thread}`));
  const keys = new Set(reported.map(({ key }) => key));
  for (const [key, worker] of known) {
    const owners = new Set([...worker.owners].filter((owner) => quiet.has(owner)));
    if (keys.has(key) || owners.size > 0) known.set(key, { ...worker, owners });
    else known.delete(key);
  }
  for (const { key, owner, pid, memory } of reported) {
    const before = known.get(key);
    known.set(key, {
      slot: before?.slot ?? freeSlot(),
      pid,
      memory: newerOf(before?.memory, memory),
      owners: new Set(before?.owners).add(owner),
    });
  }
  return [...known.values()];
}

/** Those that are processes. */
export function workerPids(threads: readonly ThreadStats[]): Set<number> {
  const workers = poolsOf(threads).flatMap(({ stats }) => stats.workers ?? []);
  return new Set(workers.flatMap(({ kind, pid }) => (kind === 'process' ? (pid ?? []) : [])));
}

function freeSlot(): number {
  const taken = new Set([...known.values()].map(({ slot }) => slot));
  let slot = 1;
  while (taken.has(slot)) slot += 1;
  return slot;
}

/** Parents of one worker are told at different times: its counters must not go down. */
function newerOf(one: WorkerMemory | undefined, other: WorkerMemory | undefined) {
  if (one === undefined || other === undefined) return one ?? other;
  return other.atMs < one.atMs ? one : other;
}

/** Of what another version may tell, what has all its parts. */
function memoryIn({ memory }: WorkerSample): WorkerMemory | undefined {
  const { atMs, heap, gc }: Partial<WorkerMemory> = Object(memory);
  return atMs === undefined || heap === undefined || gc === undefined
    ? undefined
    : { atMs, heap, gc };
}
