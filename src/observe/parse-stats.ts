// Reads the stats of a thread value by value: another version of manycore may send fewer, more or other
// values.

import type { SourceKind, SourceStats, ThreadStats } from '../agent/index.js';
import type { Rate } from './views/rates.js';

/** A thread with stats, present or old. */
export interface KnownThread {
  readonly thread: ThreadStats;
  /** Stats of the previous poll. */
  readonly last: ThreadStats | undefined;
  /** True: `thread` is old, because the thread does not answer now. */
  readonly isSilent: boolean;
  /** Rates of its counts, by its own clock. */
  readonly rate: Rate;
}

/** The kinds of workers in partitions. */
export const partitionKinds: ReadonlySet<string> = new Set(['sandbox', 'vm']);

/** All sources of this kind. */
export function sourcesOf(
  thread: ThreadStats | undefined,
  kind: SourceKind,
): readonly SourceStats[] {
  return thread?.sources.filter((source) => source.kind === kind) ?? [];
}

/** Returns the number of that name; 0: it is missing or no number. */
export function numberIn(stats: unknown, name: string): number {
  const value: unknown = Object(stats)[name];
  return typeof value === 'number' ? value : 0;
}

/** Returns the text of that name; empty: it is missing or no text. */
export function textIn(stats: unknown, name: string): string {
  const value: unknown = Object(stats)[name];
  return typeof value === 'string' ? value : '';
}

/** Returns the objects in the list of that name; none: it is missing or no list. */
export function objectsIn(stats: unknown, name: string): readonly object[] {
  const value: unknown = Object(stats)[name];
  if (!Array.isArray(value)) return [];
  return value.filter((each) => typeof each === 'object' && each !== null);
}
