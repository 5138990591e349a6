// What a thread tells, read one value at a time: it may be of another version of manycore, and tell less,
// more, or something else.

import type { SourceKind, SourceStats, ThreadStats } from '../agent/index.js';
import type { Rate } from './rates.js';

/** A thread that has told something. */
export interface KnownThread {
  readonly thread: ThreadStats;
  /** At the look before. */
  readonly last: ThreadStats | undefined;
  /** What it told is old: it does not answer now. */
  readonly isSilent: boolean;
  /** Of what it counts, by its own clock. */
  readonly rate: Rate;
}

/** Of all sources of this kind. */
export function sourcesOf(
  thread: ThreadStats | undefined,
  kind: SourceKind,
): readonly SourceStats[] {
  return thread?.sources.filter((source) => source.kind === kind) ?? [];
}

/** 0 for what is no number. */
export function numberIn(stats: unknown, name: string): number {
  const value: unknown = Object(stats)[name];
  return typeof value === 'number' ? value : 0;
}

/** Empty for what is no text. */
export function textIn(stats: unknown, name: string): string {
  const value: unknown = Object(stats)[name];
  return typeof value === 'string' ? value : '';
}

/** The objects of a list; none for what is no list. */
export function objectsIn(stats: unknown, name: string): readonly object[] {
  const value: unknown = Object(stats)[name];
  if (!Array.isArray(value)) return [];
  return value.filter((each) => typeof each === 'object' && each !== null);
}
