// Sources of threads with their stats, by kind. They arrive as JSON from threads that may run another version
// of manycore: a missing value is `undefined`, and its metric has no sample then.

import type { SourceKind, ThreadStats } from '../../agent/index.js';
import type { BusStats } from '../../bus/index.js';
import type { PoolSample } from '../../pool/index.js';
import type { LoopStatus, ServerStats } from '../../serve/index.js';
import type { StmStats } from '../../stm/index.js';

/** `space` identifies the memory, which several threads report. */
export type StmSample = StmStats & { readonly space: number };

export interface Source<Stats> {
  readonly pid: number;
  readonly thread: number;
  /** Unique among the sources of a kind in a thread, and never reused. */
  readonly id: number;
  readonly stats: Partial<Stats>;
}

export const poolsOf = (threads: readonly ThreadStats[]): Source<PoolSample>[] =>
  sourcesOf<PoolSample>(threads, 'pool');

export const busesOf = (threads: readonly ThreadStats[]): Source<BusStats>[] =>
  sourcesOf<BusStats>(threads, 'bus');

export const serversOf = (threads: readonly ThreadStats[]): Source<ServerStats>[] =>
  sourcesOf<ServerStats>(threads, 'server');

/** Transactional memories, each as one of the threads reports it that have it. */
export function memoriesOf(threads: readonly ThreadStats[]): Source<StmSample>[] {
  const all = sourcesOf<StmSample>(threads, 'stm');
  const first = new Map([...all].reverse().map((each) => [each.stats.space, each]));
  return all.filter((each) => first.get(each.stats.space) === each);
}

function sourcesOf<Stats>(threads: readonly ThreadStats[], kind: SourceKind): Source<Stats>[] {
  return threads.flatMap(({ pid, thread, sources }) =>
    sources
      .filter((source) => source.kind === kind)
      .map(({ id, stats }) => ({ pid, thread, id, stats: Object(stats) })),
  );
}

/** Server loops that run in a process now. */
export function loopsOf(
  threads: readonly ThreadStats[],
): (LoopStatus & { readonly pid: number })[] {
  const all = serversOf(threads).flatMap(({ stats }) => stats.loops ?? []);
  return all.flatMap((loop) => (loop.pid === undefined ? [] : [{ ...loop, pid: loop.pid }]));
}

/** Processes of all servers. */
export function processesOf(threads: readonly ThreadStats[]): Set<number> {
  return new Set(loopsOf(threads).map(({ pid }) => pid));
}

/** Pid of the server that this thread is a loop of; `undefined`: it is none. */
export function serverPidOf({ sources }: ThreadStats): number | undefined {
  const served = sources.find(({ kind }) => kind === 'servedLoop');
  const { server }: { server?: number } = Object(served?.stats);
  return server;
}
