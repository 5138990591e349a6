// The sources of a thread with their figures, by kind. They come as JSON from threads that may run another
// version of manycore: a figure that is missing is `undefined`, and its metric has no value then.

import type { SourceKind, ThreadFigures } from '../../agent/index.js';
import type { BusStats } from '../../bus/index.js';
import type { PoolFigures } from '../../pool/index.js';
import type { LoopStatus, ServerFigures } from '../../serve/index.js';

export interface Source<Figures> {
  readonly pid: number;
  readonly thread: number;
  /** Not given twice in a thread to those of a kind. */
  readonly id: number;
  readonly figures: Partial<Figures>;
}

export const poolsOf = (threads: readonly ThreadFigures[]): Source<PoolFigures>[] =>
  sourcesOf<PoolFigures>(threads, 'pool');

export const busesOf = (threads: readonly ThreadFigures[]): Source<BusStats>[] =>
  sourcesOf<BusStats>(threads, 'bus');

export const serversOf = (threads: readonly ThreadFigures[]): Source<ServerFigures>[] =>
  sourcesOf<ServerFigures>(threads, 'server');

function sourcesOf<Figures>(
  threads: readonly ThreadFigures[],
  kind: SourceKind,
): Source<Figures>[] {
  return threads.flatMap(({ pid, thread, sources }) =>
    sources
      .filter((source) => source.kind === kind)
      .map(({ id, figures }) => ({ pid, thread, id, figures: Object(figures) })),
  );
}

/** Loops of servers that a process runs now. */
export function loopsOf(
  threads: readonly ThreadFigures[],
): (LoopStatus & { readonly pid: number })[] {
  const all = serversOf(threads).flatMap(({ figures }) => figures.loops ?? []);
  return all.flatMap((loop) => (loop.pid === undefined ? [] : [{ ...loop, pid: loop.pid }]));
}

/** Processes of all servers. */
export function processesOf(threads: readonly ThreadFigures[]): Set<number> {
  return new Set(loopsOf(threads).map(({ pid }) => pid));
}

/** The process whose server this thread is a loop of. */
export function serverPidOf({ sources }: ThreadFigures): number | undefined {
  const served = sources.find(({ kind }) => kind === 'servedLoop');
  const { server }: { server?: number } = Object(served?.figures);
  return server;
}
