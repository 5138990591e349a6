// The few statistics of the search: the spread of runs, and an exact test whether pairs of runs differ by
// more than chance would have it. The test only counts which side was better: by how much
// is what a disturbed run gets wrong, and tests of ranks or means let one such run decide. Few lines, for
// which no library is worth its installation.

import { median, quantile } from '../internal/index.js';

/** The distance of the quartiles by the median: how far apart runs of the same are. */
export function spread(values: readonly number[]): number {
  return (quantile(values, 0.75) - quantile(values, 0.25)) / median(values);
}

/**
 * The sign test, exact and one-sided: how likely so many of the pairs, or more, come out positive by
 * chance, where both ways are equally likely. 1 of no pairs.
 */
export function signTestP(positives: number, pairs: number): number {
  let ways = 1; // to choose `more` of the pairs
  let wanted = 0;
  for (let more = pairs; more >= positives; more--) {
    wanted += ways;
    ways = (ways * more) / (pairs - more + 1);
  }
  return wanted / 2 ** pairs;
}
