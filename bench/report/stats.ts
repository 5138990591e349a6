// Medians and ranges of the few numbers from a handful of rounds. Quantiles of many latencies are computed
// during the measurement (lib/measure.js).
import type { Spread } from './types.js';

/**
 * Returns the value below which `share` of the values are, on the straight line between the two nearest
 * values; NaN for none.
 */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (sorted.length - 1) * share;
  const lower = sorted[Math.floor(at)] ?? Number.NaN;
  const upper = sorted[Math.ceil(at)] ?? Number.NaN;
  return lower + (upper - lower) * (at % 1);
}

/** Middle of the sorted values, the mean of the two middle ones when their count is even; NaN for none. */
export const median = (values: readonly number[]): number => quantile(values, 0.5);

/** Returns the ratio of `above` to `below` in each round; `null` where either of them failed. */
export function roundRatios(
  above: readonly (number | null)[] | undefined,
  below: readonly (number | null)[] | undefined,
): (number | null)[] {
  return (above ?? []).map((value, round) => {
    const other = below?.[round] ?? null;
    return value === null || other === null ? null : value / other;
  });
}

/** Returns `undefined` when no round succeeded. */
export function spreadOf(samples: readonly (number | null)[] | undefined): Spread | undefined {
  const values = (samples ?? []).filter((value) => value !== null);
  if (values.length === 0) return undefined;
  return { median: median(values), min: Math.min(...values), max: Math.max(...values) };
}
