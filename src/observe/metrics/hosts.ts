// The hosts of a program, and what they told of their memory last. Each has a slot, a number that the next one
// has when it has ended: hosts come and go, and series by their pids would pile up.

import type { ThreadFigures } from '../../agent/index.js';
import type { HostFigures } from '../../pool/index.js';
import { poolsOf } from './sources.js';

type HostMemory = NonNullable<HostFigures['memory']>;

export interface ThreadPlace {
  readonly pid: number;
  readonly thread: number;
}

export interface HostReading {
  readonly slot: number;
  /** `undefined` for a thread, and for one on another machine. */
  readonly pid: number | undefined;
  /** `undefined` for one that has not told yet. */
  readonly memory: HostMemory | undefined;
}

interface KnownHost extends HostReading {
  /** Threads that have it in a pool, or had it when they told last and are silent now. */
  readonly owners: ReadonlySet<string>;
}

/** Of the last reading. A process is known by its pid, another host by who started it and its number there. */
const known = new Map<string, KnownHost>();

/**
 * All hosts in the pools of these threads; those that several loops share are in the pools of all of them.
 * Those of threads that are there and `silent` are as they were: a slot is not given away because a loop is
 * blocked for a while.
 */
export function hostReadings(
  threads: readonly ThreadFigures[],
  silent: readonly ThreadPlace[] = [],
): HostReading[] {
  const told = poolsOf(threads).flatMap(({ pid, thread, figures: { hosts = [] } }) =>
    hosts.map((host) => {
      const ofProcess = host.kind === 'process' ? host.pid : undefined;
      const key = ofProcess === undefined ? `${pid}.${thread}.${host.id}` : String(ofProcess);
      return { key, owner: `${pid}.${thread}`, pid: ofProcess, memory: memoryIn(host) };
    }),
  );
  const quiet = new Set(silent.map(({ pid, thread }) => `${pid}.${thread}`));
  const keys = new Set(told.map(({ key }) => key));
  for (const [key, host] of known) {
    const owners = new Set([...host.owners].filter((owner) => quiet.has(owner)));
    if (keys.has(key) || owners.size > 0) known.set(key, { ...host, owners });
    else known.delete(key);
  }
  for (const { key, owner, pid, memory } of told) {
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
export function hostPids(threads: readonly ThreadFigures[]): Set<number> {
  const hosts = poolsOf(threads).flatMap(({ figures }) => figures.hosts ?? []);
  return new Set(hosts.flatMap(({ kind, pid }) => (kind === 'process' ? (pid ?? []) : [])));
}

function freeSlot(): number {
  const taken = new Set([...known.values()].map(({ slot }) => slot));
  let slot = 1;
  while (taken.has(slot)) slot += 1;
  return slot;
}

/** Parents of one host are told at different times: its counters must not go down. */
function newerOf(one: HostMemory | undefined, other: HostMemory | undefined) {
  if (one === undefined || other === undefined) return one ?? other;
  return other.atMs < one.atMs ? one : other;
}

/** Of what another version may tell, what has all its parts. */
function memoryIn({ memory }: HostFigures): HostMemory | undefined {
  const { atMs, heap, gc }: Partial<HostMemory> = Object(memory);
  return atMs === undefined || heap === undefined || gc === undefined
    ? undefined
    : { atMs, heap, gc };
}
