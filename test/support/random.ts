// Repeatable random numbers: a test that uses chance names its seed when it fails, and `MANYCORE_SEED=n npm
// test -- part` runs it with that seed. The generator is mulberry32: 32 bits of state, good enough to vary
// inputs, and nothing else.

import type { TestContext } from 'node:test';

export interface Random {
  readonly seed: number;
  /** In `[0, 1)`. */
  next(): number;
  /** An integer in `[from, to)`. */
  integer(from: number, to: number): number;
  /** One of `items`, which is not empty. */
  pick<T>(items: readonly T[]): T;
  /** `sizeBytes` random bytes. */
  bytes(sizeBytes: number): Buffer;
}

/** A generator for this test; the seed is in the test's output, and in `MANYCORE_SEED` to repeat it. */
export function random(t: TestContext): Random {
  const wanted = process.env['MANYCORE_SEED'];
  const seed = wanted === undefined ? Math.floor(Math.random() * 2 ** 32) : Number(wanted) >>> 0;
  t.diagnostic(`MANYCORE_SEED=${seed}`);
  return seeded(seed);
}

/** The generator itself: equal seeds give equal numbers. */
export function seeded(seed: number): Random {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const integer = (from: number, to: number) => from + Math.floor(next() * (to - from));
  return {
    seed,
    next,
    integer,
    pick<T>(items: readonly T[]): T {
      const item = items[integer(0, items.length)];
      if (item === undefined) throw new RangeError('pick from an empty list');
      return item;
    },
    bytes: (sizeBytes) => Buffer.from(Array.from({ length: sizeBytes }, () => integer(0, 256))),
  };
}
