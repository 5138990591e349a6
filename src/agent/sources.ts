// Registry of the sources of stats in this thread: pools, buses, servers, loops. A source registers when it
// opens. A second after the first one the socket opens (socket.ts): a shorter program needs none. The
// registry does not keep a source alive. In a context of node:vm nothing starts: no sampler follows a test
// file, and its loader may be gone a second later.

import { clearTimeout, isMainRealm, type ProfileAnswer, setTimeout } from '../lib/index.js';
import type { SampleOptions } from './sampler.js';
import type { SourceKind, SourceStats, ThreadStats } from './stats.js';

interface Entry {
  readonly kind: SourceKind;
  readonly id: number;
  readonly owner: WeakRef<object>;
  /** Reads the stats; `undefined` when the owner is gone. */
  readonly read: () => object | undefined;
  /** Fetches stats of other threads; `undefined` when there are none to fetch. */
  readonly refresh: () => Promise<unknown> | undefined;
  /** Profiles one of its workers; `undefined` when it has no such worker. */
  readonly profileWorker: WorkerProfiler;
}

/** Sends the profile of a worker, and returns the function that gives up; `undefined`: it is another's worker. */
type WorkerProfiler = (
  worker: number,
  seconds: number,
  send: (answer: ProfileAnswer) => void,
) => (() => void) | undefined;

/** Other threads and processes of a source. Nothing here may hold the owner. */
export interface SourceWorkers<Owner> {
  /** Fetches their stats before each read. */
  readonly refresh?: (owner: Owner) => Promise<unknown>;
  readonly profile?: (
    owner: Owner,
    ...of: Parameters<WorkerProfiler>
  ) => ReturnType<WorkerProfiler>;
}

/** Delay between the first source and the socket. */
const settledMs = 1000;
/** Limit of the wait for stats of other threads. */
const refreshMs = 50;
/** The value of MANYCORE_AGENT that disables the socket. */
const off = '0';

const entries = new Set<Entry>();
const lastIds = new Map<SourceKind, number>();
let begun: AgentStart | undefined;

/**
 * Registers a source. `read` may not hold the owner. Returns the function that unregisters it.
 */
export function addSource<Owner extends object>(
  kind: SourceKind,
  owner: Owner,
  read: (owner: Owner) => object,
  { refresh, profile }: SourceWorkers<Owner> = {},
): () => void {
  const ref = new WeakRef(owner);
  const id = (lastIds.get(kind) ?? 0) + 1;
  lastIds.set(kind, id);
  const entry: Entry = {
    kind,
    id,
    owner: ref,
    read: () => {
      const found = ref.deref();
      return found && read(found);
    },
    refresh: () => {
      const found = ref.deref();
      return found && refresh?.(found);
    },
    profileWorker: (...of) => {
      const found = ref.deref();
      return found && profile?.(found, ...of);
    },
  };
  entries.add(entry);
  startSoon();
  return () => {
    entries.delete(entry);
    if (entries.size === 0) rest();
  };
}

/** Stats of all sources. */
export function sourceStats(): SourceStats[] {
  const all: SourceStats[] = [];
  for (const entry of entries) {
    const stats = entry.read();
    if (stats === undefined) entries.delete(entry);
    else all.push({ kind: entry.kind, id: entry.id, stats });
  }
  return all;
}

/**
 * Refreshes all sources, with a time limit; late ones keep their old stats. `isHeld`: the event loop stays
 * alive meanwhile.
 */
async function refreshSources(isHeld: boolean): Promise<void> {
  const pending = [...entries].flatMap((entry) => entry.refresh() ?? []);
  if (pending.length === 0) return;
  await new Promise<unknown>((resolve) => {
    const timer = setTimeout(resolve, refreshMs);
    if (!isHeld) timer.unref();
    void Promise.allSettled(pending).then(() => {
      clearTimeout(timer);
      resolve(undefined);
    });
  });
}

/** Profiles a worker of one of the sources. Returns the function that gives up. */
function profileWorker(...of: Parameters<WorkerProfiler>): () => void {
  for (const entry of entries) {
    const giveUp = entry.profileWorker(...of);
    if (giveUp !== undefined) return giveUp;
  }
  const [, , send] = of;
  send({ problem: 'it has ended' });
  return () => {};
}

/** The present stats of this thread; starts sampling. Needs no socket, and works where it is disabled. */
export async function ownStats(options: SampleOptions = {}): Promise<ThreadStats> {
  const { threadSampler } = await import('./sampler.js');
  await refreshSources(true);
  return threadSampler(sourceStats).sample(options);
}

function startSoon(): void {
  if (begun !== undefined || !isMainRealm) return;
  if (process.env['MANYCORE_AGENT'] !== off) begun = new AgentStart();
}

function rest(): void {
  begun?.end();
  begun = undefined;
}

/** The start of the socket: waits, loads the server, opens it. `end` stops it at any of these steps. */
class AgentStart {
  // A socket that does not open is no reason for a program to fail.
  readonly #timer = setTimeout(() => void this.#open().catch(() => {}), settledMs).unref();
  #close: (() => void) | undefined;
  #isOver = false;

  async #open(): Promise<void> {
    const { openSocket } = await import('./socket.js');
    if (this.#isOver) return;
    this.#close = openSocket(sourceStats, () => refreshSources(false), profileWorker);
    // A program with an empty loop is about to end: its socket is removed.
    process.once('beforeExit', rest);
  }

  end(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#close?.();
    process.off('beforeExit', rest);
  }
}
