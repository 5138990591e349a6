// The short run of the tests (scripts/lib/few-tests.mjs): what repeats itself does so less often.

export const isFew = process.env['MANYCORE_TESTS'] === 'few';

/** Returns all of them, in a short run `count` at equal distances, the first among them. */
export function someOf<T>(all: readonly T[], count: number): readonly T[] {
  const share = Math.min(1, count / all.length);
  return isFew ? all.filter((_, at) => Math.floor(at * share) > Math.floor((at - 1) * share)) : all;
}
