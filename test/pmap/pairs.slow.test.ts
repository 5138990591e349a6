// All pairs of items, without a list of pairs.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type MapProgress, pmap, shared } from '../../src/public.js';
import { spinMs } from '../pool/tasks.js';
import { random } from '../support/index.js';
import { Point } from './mappers.js';
import { count, mapWays, via, workerWays } from './ways.js';

/** Every pair of `items`, as a map over them should give it. */
function pairsOf<T>(items: readonly T[]): [T, T, number, number][] {
  return items.flatMap((a, i) =>
    items.slice(i + 1).map((b, at): [T, T, number, number] => [a, b, i, i + 1 + at]),
  );
}

const take = <T>(a: T, b: T, i: number, j: number): [T, T, number, number] => [a, b, i, j];

for (const way of mapWays) {
  for (const items of [0, 1, 2, 3, 50]) {
    test(`${way.name}: ${items} items have ${(items * (items - 1)) / 2} pairs, in order, with both indices`, async () => {
      const words = count(items).map((item) => `word ${item}`);
      assert.deepEqual(await pmap.pairs(words, take, via(way)), pairsOf(words));
    });
  }

  for (const chunk of [1, 2, 7, 44, 45, 1000]) {
    test(`${way.name}: pairs in chunks of ${chunk} are in order`, async () => {
      const results = await pmap.pairs(count(10), take, { ...via(way), chunk });
      assert.deepEqual(results, pairsOf(count(10)));
    });
  }

  test(`${way.name}: as they come all pairs come`, async () => {
    const work = (a: number, b: number): string => {
      if (a === 0) spinMs(1);
      return `${a} ${b}`;
    };
    const results = await pmap.pairs(count(30), work, { ...via(way), ordered: false, chunk: 3 });
    assert.deepEqual(
      results.sort(),
      pairsOf(count(30))
        .map(([a, b]) => `${a} ${b}`)
        .sort(),
    );
  });

  for (const [what, open] of [
    ['a generator', () => count(12).values()],
    ['a Set', () => new Set(count(12))],
    ['a typed array', () => new Int16Array(count(12))],
    [
      'a typed array in shared memory',
      () => new Int16Array(shared(24).buffer, 0, 12).map((_, at) => at),
    ],
  ] as const) {
    test(`${way.name}: ${what} is paired`, async () => {
      const results = await pmap.pairs(open() as Iterable<number>, take, via(way));
      assert.deepEqual(results, pairsOf(count(12)));
    });
  }

  test(`${way.name}: the letters of a text are paired`, async () => {
    const results = await pmap.pairs('aé🂡', (a, b) => a + b, via(way));
    assert.deepEqual(results, ['aé', 'a🂡', 'é🂡']);
  });

  test(`${way.name}: pairs of instances, by an async function, keep their class`, async () => {
    const points = count(8).map((x) => new Point(x, 1));
    const add = async (a: Point, b: Point) => new Point(a.sum + b.sum, 0);
    const results = await pmap.pairs(points, add, { ...via(way), chunk: 5 });
    assert.deepEqual(
      results,
      pairsOf(points).map(([a, b]) => new Point(a.sum + b.sum, 0)),
    );
    assert.ok(results.every((each) => each instanceof Point));
  });

  test(`${way.name}: a pair that fails is named by its number, the others are not lost when settled`, async () => {
    const work = (a: number, b: number): number => {
      if (a === 2 && b === 4) throw new RangeError('two and four');
      return a * b;
    };
    const index = pairsOf(count(6)).findIndex(([a, b]) => a === 2 && b === 4);
    const options = { ...via(way), chunk: 4 };
    await assert.rejects(pmap.pairs(count(6), work, options), (error: Error) => {
      assert.match(error.stack ?? '', new RegExp(`pair ${index} \\(items 2 and 4\\)\\]`));
      assert.equal(Reflect.get(error, 'itemIndex'), index);
      return true;
    });
    const outcomes = await pmap.pairs(count(6), work, { ...options, settled: true });
    assert.deepEqual(
      outcomes.map((each) => (each.status === 'fulfilled' ? each.value : each.reason.itemIndex)),
      pairsOf(count(6)).map(([a, b], at) => (at === index ? index : a * b)),
    );
  });

  test(`${way.name}: holes make pairs with undefined, as in Array.from`, async () => {
    const sparse = new Array<number>(3);
    sparse[0] = 1;
    sparse[2] = 3;
    const found = await pmap.pairs(sparse, (a, b) => [a, b], via(way));
    assert.deepEqual(found, [
      [1, undefined],
      [1, 3],
      [undefined, 3],
    ]);
  });

  test(`${way.name}: of no items there are 0 pairs, of which 0 are done`, async () => {
    const told: MapProgress[] = [];
    const onProgress = (progress: MapProgress) => void told.push(progress);
    await pmap.pairs([], take, { ...via(way), onProgress });
    assert.deepEqual(told, [{ doneItems: 0, totalItems: 0 }]);
  });

  test(`${way.name}: what has no pairs is refused`, async () => {
    async function* later(): AsyncGenerator<number> {
      yield 1;
    }
    for (const [args, code] of [
      [[5, take], 'OPTION_INVALID'],
      [[undefined, take], 'OPTION_INVALID'],
      [[later(), take], 'OPTION_INVALID'],
      [[[1, 2], 'take'], 'TASK_NOT_FUNCTION'],
      [[[1, 2], take, { into: new Int8Array(1) }], 'OPTION_INVALID'],
    ] as const) {
      await assert.rejects(Reflect.apply(pmap.pairs, undefined, args), { code });
    }
  });

  test(`${way.name}: tiny pairs do not cost a message each`, async () => {
    const map = pmap.pairs(count(300), (a, b) => a + b, via(way));
    assert.equal((await map).length, 44_850);
    assert.ok(map.stats().chunks <= 2500, `${map.stats().chunks} chunks`);
  });
}

for (const way of workerWays) {
  test(`${way.name}: pairs of what changes after the call are of what was there`, async () => {
    const items = count(20).map((n) => ({ n }));
    const map = pmap.pairs(items, (a, b) => a.n * b.n, { ...via(way), chunk: 5 });
    for (const item of items) item.n = -1;
    items.length = 0;
    assert.deepEqual(
      await map,
      pairsOf(count(20)).map(([a, b]) => a * b),
    );
  });

  test(`${way.name}: pairs of what cannot travel are refused before anything is sent`, async () => {
    const map = pmap.pairs([1, new WeakRef({})], () => 1, via(way));
    await assert.rejects(map, { code: 'TRANSFER_UNSUPPORTED' });
    assert.equal(map.stats().chunks, 0);
  });

  test(`${way.name}: similar texts are found among random ones`, async (t) => {
    const dice = random(t);
    const texts = count(40).map(() =>
      Array.from({ length: 60 }, () => dice.pick(['a', 'b', 'c'])).join(''),
    );
    const same = (a: string, b: string): number => {
      let equal = 0;
      for (let at = 0; at < a.length; at += 1) if (a[at] === b[at]) equal += 1;
      return equal;
    };
    assert.deepEqual(
      await pmap.pairs(texts, same, via(way)),
      pairsOf(texts).map(([a, b]) => same(a, b)),
    );
  });
}

test('more pairs than a list holds are OPTION_INVALID, before anything is made of them', async () => {
  const map = pmap.pairs(new Uint8Array(92_683), () => 1, { channel: 'inline' });
  await assert.rejects(map, {
    code: 'OPTION_INVALID',
    message: /^92683 items make 4295022903 pairs, and a list holds 4294967295: compare fewer/,
  });
});
