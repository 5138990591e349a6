// The middle of some figures, and other parts of them. Few lines, for which no library is worth its
// installation.

/** NaN of no values. */
export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** Between the two nearest values in proportion; `share` from 0 to 1. NaN of no values. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const at = share * (sorted.length - 1);
  const low = sorted[Math.floor(at)] ?? Number.NaN;
  const high = sorted[Math.ceil(at)] ?? Number.NaN;
  return low + (high - low) * (at - Math.floor(at));
}
