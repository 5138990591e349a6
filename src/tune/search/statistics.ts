// Statistics of the search: the spread of runs, and an exact test for pairs of runs. The test counts only
// which side was better. The size of a difference is what a disturbed run gets wrong, and tests of ranks or
// means let one such run decide. These few lines need no library.

import { median, quantile } from '../../lib/index.js';

/** Interquartile range divided by the median: the variation between runs of one configuration. */
export function spread(values: readonly number[]): number {
  return (quantile(values, 0.75) - quantile(values, 0.25)) / median(values);
}

/**
 * The sign test, exact and one-sided: the probability of so many positive pairs, or more, by chance, when
 * both signs are equally likely. 1 for no pairs.
 */
export function signTestP(positives: number, pairs: number): number {
  let ways = 1; // ways to choose `more` of the pairs
  let wanted = 0;
  for (let more = pairs; more >= positives; more--) {
    wanted += ways;
    ways = (ways * more) / (pairs - more + 1);
  }
  return wanted / 2 ** pairs;
}
