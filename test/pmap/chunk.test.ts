// Numbers of items per chunk, and pairs by their numbers: pure, so tested by properties.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  chunkItems,
  chunkTargetMs,
  type ItemCost,
  isCheaperHere,
  learnCost,
  unknownCost,
} from '../../src/pmap/chunk.js';
import { type Chunk, type ChunkAnswer, runChunk } from '../../src/worker/index.js';
import { pairAt } from '../../src/worker/inside/chunk.js';

const anyMs = fc.double({ min: 1e-6, max: 1e5, noNaN: true });
const anyChunk = fc.record({
  items: fc.integer({ min: 1, max: 1_000_000 }),
  ranMs: anyMs,
  sentMs: fc.oneof(fc.constant(0), anyMs),
});
/** Costs after any chunks. */
const anyCost = fc
  .array(anyChunk, { maxLength: 10 })
  .map((chunks) =>
    chunks.reduce<ItemCost>(
      (cost, { items, ranMs, sentMs }) => learnCost(cost, items, ranMs, sentMs),
      unknownCost,
    ),
  );
const anyCount = fc.integer({ min: 1, max: 1024 });
const anyLimits = fc
  .record({
    workers: anyCount,
    remainingItems: fc.option(fc.integer({ min: 1, max: 2 ** 31 }), { nil: undefined }),
  })
  .map((limits) => ({ ...limits, targetMs: chunkTargetMs(limits.workers) }));

test('a chunk has at least one item and no more than remain, whatever was measured', () => {
  fc.assert(
    fc.property(anyCost, anyLimits, (cost, limits) => {
      const items = chunkItems(cost, limits);
      assert.ok(Number.isInteger(items) && items >= 1, `${items} items`);
      if (limits.remainingItems !== undefined) assert.ok(items <= limits.remainingItems);
    }),
  );
});

test('nothing is known before the first answer, so the first chunk has one item', () => {
  fc.assert(
    fc.property(anyLimits, (limits) => {
      assert.equal(chunkItems(unknownCost, limits), 1);
    }),
  );
});

test('a chunk is not meant to take longer than its target even if all its items are fast', () => {
  fc.assert(
    fc.property(anyCost, anyLimits, (cost, limits) => {
      const items = chunkItems(cost, limits);
      const fastMs = Math.min(cost.fastMs, cost.runMs ?? 0);
      assert.ok(items === 1 || items * fastMs <= limits.targetMs * (1 + 1e-9));
    }),
  );
});

test('where items are slow to send a chunk has no more than it needs on average', () => {
  fc.assert(
    fc.property(anyCost, anyLimits, (cost, limits) => {
      const items = chunkItems(cost, limits);
      const average = limits.targetMs / (cost.runMs ?? 1);
      const isSlowToSend = items * cost.sendMs > limits.targetMs * 0.1 * (1 + 1e-9);
      assert.ok(items === 1 || !isSlowToSend || items <= average * (1 + 1e-9));
    }),
  );
});

test('a chunk is at most four times as large as the largest before', () => {
  fc.assert(
    fc.property(anyCost, anyLimits, (cost, limits) => {
      assert.ok(chunkItems(cost, limits) <= 4 * Math.max(1, cost.maxItems));
    }),
  );
});

test('the less remains, the smaller the chunk', () => {
  fc.assert(
    fc.property(
      anyCost,
      anyCount,
      fc.array(fc.integer({ min: 1, max: 2 ** 31 })),
      (cost, workers, remaining) => {
        const sizes = remaining
          .sort((a, b) => a - b)
          .map((remainingItems) => chunkItems(cost, { workers, targetMs: 5, remainingItems }));
        assert.deepEqual(
          sizes,
          sizes.toSorted((a, b) => a - b),
        );
      },
    ),
  );
});

test('what is left is enough for two chunks of each worker, where a chunk is worth its message', () => {
  fc.assert(
    fc.property(
      anyCost,
      anyCount,
      fc.integer({ min: 1, max: 2 ** 31 }),
      (cost, workers, remainingItems) => {
        const items = chunkItems(cost, { workers, targetMs: 5, remainingItems });
        const isWorthIt = items * (cost.runMs ?? 0) > 0.2 * (1 + 1e-9);
        assert.ok(items === 1 || !isWorthIt || items <= Math.ceil(remainingItems / (2 * workers)));
      },
    ),
  );
});

test('items that are slow to send go in smaller chunks: this thread writes for 1 ms at most', () => {
  fc.assert(
    fc.property(anyCost, anyLimits, (cost, limits) => {
      const items = chunkItems(cost, limits);
      assert.ok(items === 1 || items * cost.sendMs <= 1 + 1e-9);
    }),
  );
});

test('an item that takes longer than the target travels alone', () => {
  fc.assert(
    fc.property(anyLimits, fc.integer({ min: 1, max: 1000 }), (limits, items) => {
      const cost = learnCost(unknownCost, items, limits.targetMs * 1.01 * items, 0);
      assert.equal(chunkItems(cost, limits), 1);
    }),
  );
});

test('what is learnt lies between what was known and what was measured', () => {
  fc.assert(
    fc.property(anyCost, anyChunk, (cost, { items, ranMs, sentMs }) => {
      const learnt = learnCost(cost, items, ranMs, sentMs);
      const measured = Math.max(ranMs / items, 1e-6);
      const known = cost.runMs ?? measured;
      const runMs = learnt.runMs ?? Number.NaN;
      assert.ok(runMs >= Math.min(known, measured) * (1 - 1e-9), `${runMs}`);
      assert.ok(runMs <= Math.max(known, measured) * (1 + 1e-9), `${runMs}`);
      assert.ok(learnt.maxItems >= items && learnt.maxItems >= cost.maxItems);
    }),
  );
});

test('the message itself is not what an item costs to be sent', () => {
  const cost = [1, 4, 16, 64].reduce<ItemCost>(
    (known, items) => learnCost(known, items, items, 0.05 + items * 0.001),
    unknownCost,
  );
  assert.ok(cost.sendMs <= 0.0011, `${cost.sendMs}`);
});

test('items that cost less than sending them are cheaper here, once enough of them were measured', () => {
  const learn = (items: number, ranMs: number, sentMs: number): ItemCost =>
    learnCost(learnCost(unknownCost, 1, 1, 0), items, ranMs, sentMs);
  assert.equal(isCheaperHere(learn(1000, 0.01, 0.5)), true);
  assert.equal(isCheaperHere(learn(1000, 5, 0.5)), false);
  assert.equal(isCheaperHere(learn(10, 0.0001, 0.5)), false);
  assert.equal(isCheaperHere(unknownCost), false);
});

test('with many workers chunks take longer, so that this thread keeps up with all of them', () => {
  fc.assert(
    fc.property(anyCount, (workers) => {
      const targetMs = chunkTargetMs(workers);
      assert.ok(targetMs >= chunkTargetMs(1));
      assert.ok(targetMs >= workers * 0.2);
    }),
  );
});

test('a long map that is alone has longer chunks, until its rest is short', () => {
  fc.assert(
    fc.property(anyCount, fc.double({ min: 0, max: 1e6, noNaN: true }), (workers, restMs) => {
      const [least, targetMs] = [chunkTargetMs(workers), chunkTargetMs(workers, restMs)];
      assert.ok(targetMs >= least && targetMs <= Math.max(least, 50));
      assert.ok(targetMs === least || targetMs * workers * 8 <= restMs * (1 + 1e-9));
    }),
  );
  assert.equal(chunkTargetMs(2, 1e4), 50);
  assert.equal(chunkTargetMs(2, 400), 25);
});

test('chunks that take the same time are soon as large as their target', () => {
  fc.assert(
    fc.property(fc.double({ min: 1e-5, max: 1, noNaN: true }), anyCount, (runMs, workers) => {
      const targetMs = chunkTargetMs(workers);
      let cost: ItemCost = unknownCost;
      let items = 0;
      for (let round = 0; round < 20; round += 1) {
        items = chunkItems(cost, { workers, targetMs, remainingItems: undefined });
        cost = learnCost(cost, items, items * runMs, 0);
      }
      const wanted = targetMs / runMs;
      assert.ok(Math.abs(items - wanted) <= 1 + wanted * 0.01, `${items} of ${wanted}`);
    }),
  );
});

test('pairs are numbered in their order, and none is left out', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 60 }), (itemCount) => {
      let number = 0;
      for (let i = 0; i < itemCount; i += 1) {
        for (let j = i + 1; j < itemCount; j += 1) {
          assert.deepEqual(pairAt(number, itemCount), [i, j]);
          number += 1;
        }
      }
      assert.equal(number, (itemCount * (itemCount - 1)) / 2);
    }),
  );
});

test('the pair of a number is right where rows meet, for up to fifty million items', () => {
  const anyRow = fc.integer({ min: 2, max: 50_000_000 }).chain((itemCount) =>
    fc.record({
      itemCount: fc.constant(itemCount),
      i: fc.integer({ min: 0, max: itemCount - 2 }),
    }),
  );
  fc.assert(
    fc.property(anyRow, ({ itemCount, i }) => {
      const first = Number(BigInt(i) * BigInt(itemCount) - (BigInt(i) * BigInt(i + 1)) / 2n);
      const last = first + itemCount - i - 2;
      assert.deepEqual(pairAt(first, itemCount), [i, i + 1]);
      assert.deepEqual(pairAt(last, itemCount), [i, itemCount - 1]);
    }),
  );
});

/** A chunk of four items that map to themselves, with this budget. */
function runFour(
  output: Chunk['output'],
  budgetMs: number,
  isAsync: boolean,
): Promise<ChunkAnswer> {
  const isFold = output === 'fold';
  const map = isAsync ? async (item: unknown) => item : (item: unknown) => item;
  const combine = (left: unknown, right: unknown): string => `${left}${right}`;
  const chunk: Chunk = {
    input: 'items',
    output,
    start: 7,
    count: 4,
    budgetMs,
    items: [1, 2, 3, 4],
    offset: 0,
    indices: undefined,
    into: 'Int8Array',
  };
  return Promise.resolve(runChunk(isFold ? () => ({ map, combine }) : map, chunk, () => false));
}

const fulfilled = (value: unknown) => ({ status: 'fulfilled', value });

for (const isAsync of [false, true]) {
  const kind = isAsync ? 'async' : 'sync';
  for (const [output, ofOne, ofFour] of [
    ['list', [1], [1, 2, 3, 4]],
    ['settled', [fulfilled(1)], [1, 2, 3, 4].map(fulfilled)],
    ['kept', [0], [0, 1, 2, 3]],
    ['fill', new Int8Array([1]), new Int8Array([1, 2, 3, 4])],
    ['fold', 1, '1234'],
  ] as const) {
    test(`a chunk of ${kind} items (${output}) whose time is over answers for those it began, at least one`, async () => {
      const over = await runFour(output, 0, isAsync);
      assert.deepEqual([over.done, over.value], [1, ofOne]);
      const whole = await runFour(output, Infinity, isAsync);
      assert.deepEqual([whole.done, whole.value], [4, ofFour]);
      assert.ok(whole.ranMs >= 0);
    });
  }
}
