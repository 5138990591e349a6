// Greedy string tiling, held against the plain algorithm of the paper, and its worst inputs.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type Tile, tile } from './modules.js';

// Few letters and pieces that come again, so that there is much to choose from.
const codes = fc
  .array(
    fc.oneof(
      fc.array(fc.integer({ min: 0, max: 2 }), { maxLength: 8 }),
      fc.constantFrom([0, 0, 0, 0, 0], [1, 2, 1, 2, 1, 2], [3, 4, 5, 6, 7, 8, 9]),
    ),
    { maxLength: 8 },
  )
  .map((pieces) => Uint8Array.from(pieces.flat()));

/** The algorithm of the paper: repeatedly the longest free passage, the first of equal ones. */
function tilePlainly(a: Uint8Array, b: Uint8Array, leastTokens: number): Tile[] {
  const [usedA, usedB] = [new Set<number>(), new Set<number>()];
  const tiles: Tile[] = [];
  for (;;) {
    let best: Tile = [0, 0, 0];
    for (let i = 0; i < a.length; i++) {
      for (let j = 0; j < b.length; j++) {
        let count = 0;
        const isFree = () => !usedA.has(i + count) && !usedB.has(j + count);
        while (i + count < a.length && a[i + count] === b[j + count] && isFree()) count += 1;
        if (count > best[2]) best = [i, j, count];
      }
    }
    if (best[2] < leastTokens) return tiles.sort(([one], [other]) => one - other);
    for (let at = 0; at < best[2]; at++) {
      usedA.add(best[0] + at);
      usedB.add(best[1] + at);
    }
    tiles.push(best);
  }
}

/** True: `tile` keeps the sides; else it swaps them, and the first of equal passages differs. */
function areInOrder(a: Uint8Array, b: Uint8Array): boolean {
  return a.length < b.length || (a.length === b.length && Buffer.compare(a, b) <= 0);
}

test('the tiles are those of the plain algorithm', () => {
  fc.assert(
    fc.property(codes, codes, fc.integer({ min: 1, max: 5 }), (one, other, leastTokens) => {
      const [a, b] = areInOrder(one, other) ? [one, other] : [other, one];
      assert.deepEqual(tile(a, b, leastTokens), tilePlainly(a, b, leastTokens));
    }),
    { numRuns: 300 },
  );
});

test('tiles are equal passages, long enough, and none overlaps another on its side', () => {
  fc.assert(
    fc.property(codes, codes, fc.integer({ min: 1, max: 6 }), (a, b, leastTokens) => {
      const tiles = tile(a, b, leastTokens);
      const [usedA, usedB] = [new Set<number>(), new Set<number>()];
      for (const [startA, startB, tokens] of tiles) {
        assert.ok(tokens >= leastTokens);
        for (let at = 0; at < tokens; at++) {
          assert.equal(a[startA + at], b[startB + at]);
          usedA.add(startA + at);
          usedB.add(startB + at);
        }
      }
      const total = tiles.reduce((sum, [, , tokens]) => sum + tokens, 0);
      assert.deepEqual([usedA.size, usedB.size], [total, total]);
    }),
  );
});

test('the tiles of (b, a) are those of (a, b) with the sides changed', () => {
  fc.assert(
    fc.property(codes, codes, (a, b) => {
      const turned = tile(b, a, 2).map(
        ([startB, startA, tokens]): Tile => [startA, startB, tokens],
      );
      assert.deepEqual(
        turned.sort(([one], [other]) => one - other),
        tile(a, b, 2),
      );
    }),
  );
});

test('a program and itself are one tile', () => {
  fc.assert(
    fc.property(codes, (a) => {
      assert.deepEqual(tile(a, a, 1), a.length === 0 ? [] : [[0, 0, a.length]]);
    }),
  );
});

test('passages that were moved are found', () => {
  const [x, y, z] = [1, 2, 3].map((first) => Array.from({ length: 30 }, (_, at) => first + 4 * at));
  const a = Uint8Array.from([...(x ?? []), ...(y ?? []), ...(z ?? [])]);
  const b = Uint8Array.from([...(z ?? []), ...(x ?? []), ...(y ?? [])]);
  assert.deepEqual(tile(a, b, 20), [
    [0, 30, 60],
    [60, 0, 30],
  ]);
});

test('two large tables of one repeated value are one tile', () => {
  // Comparing all passages would take minutes.
  const [a, b] = [new Uint8Array(300_000), new Uint8Array(200_000)];
  assert.deepEqual(tile(a, b, 20), [[0, 0, 200_000]]);
});

test('a file that repeats a method hundreds of times is tiled as often', () => {
  const method = Array.from({ length: 24 }, (_, at) => 10 + at);
  const repeat = (count: number, separator: number) =>
    Uint8Array.from(
      Array.from({ length: count }, (_, at) => [...method, separator + (at % 90)]).flat(),
    );
  // Separators differ, so no two copies in a row match at once: over a million matches of 24 tokens.
  const tiles = tile(repeat(1100, 40), repeat(1000, 140), 20);
  assert.equal(tiles.length, 1000);
  assert.ok(tiles.every(([, , tokens]) => tokens === 24));
});
