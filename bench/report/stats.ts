// Medians and ranges of the few numbers that a handful of rounds gives. Quantiles of many latencies
// are taken where they are measured (lib/measure.js).
import type { Spread } from './types.js';

/** Middle of the sorted values, the mean of the two middle ones when their count is even; NaN for none. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  const upper = sorted[half];
  if (upper === undefined) return Number.NaN;
  const lower = sorted.length % 2 === 0 ? sorted[half - 1] : upper;
  return ((lower ?? upper) + upper) / 2;
}

/** `undefined` when no round succeeded. */
export function spreadOf(samples: readonly (number | null)[] | undefined): Spread | undefined {
  const values = (samples ?? []).filter((value) => value !== null);
  if (values.length === 0) return undefined;
  return { median: median(values), min: Math.min(...values), max: Math.max(...values) };
}
