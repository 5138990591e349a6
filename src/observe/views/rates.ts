// Arithmetic of views: rates between two polls, sums and maxima of values that may be missing.

import type { TreeProcess } from '../usage.js';

/** Converts two counts to a rate per second; `undefined` when the previous poll has no count. */
export type Rate = (now: number, before: number | undefined) => number | undefined;

/** `elapsedMs`: time between the two polls; 0 without a previous one. */
export function perSecond(
  now: number,
  before: number | undefined,
  elapsedMs: number,
): number | undefined {
  // A smaller count than before: its process or thread was replaced.
  if (before === undefined || elapsedMs <= 0 || now < before) return undefined;
  return ((now - before) * 1000) / elapsedMs;
}

/** CPU and memory of processes, by pid. */
export interface Processes {
  readonly cpuShareOf: (pid: number | undefined) => number | undefined;
  readonly rssBytesOf: (pid: number | undefined) => number | undefined;
  /** All processes of the partition whose process outside has this pid; empty for others. */
  readonly treeOf: (pid: number | undefined) => readonly TreeProcess[];
}

/** Sum of the defined values; `undefined`: there are none. */
export function total(values: readonly (number | undefined)[]): number | undefined {
  const known = values.filter((value) => value !== undefined);
  return known.length === 0 ? undefined : known.reduce((sum, value) => sum + value, 0);
}

/** Maximum of the defined values; `undefined`: there are none. */
export function maxOf(values: readonly (number | undefined)[]): number | undefined {
  const known = values.filter((value) => value !== undefined);
  return known.length === 0 ? undefined : Math.max(...known);
}
