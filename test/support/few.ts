// The short run of the tests (scripts/lib/few-tests.mjs): what repeats itself does so less often.

export const isFew = process.env['MANYCORE_TESTS'] === 'few';

/** Returns all of them, in a short run the first `count`. */
export function someOf<T>(all: readonly T[], count: number): readonly T[] {
  return isFew ? all.slice(0, count) : all;
}
