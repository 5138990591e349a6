// Inputs of maps: every kind gives the results of `map`, over every channel.

import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { pmap } from '../../src/public.js';
import { openPool } from '../pool/calls/ways.js';
import { Point } from './mappers.js';
import { count, mapWays, via, workerWays } from './ways.js';

function* numbers(items: number): Generator<number> {
  for (let number = 0; number < items; number += 1) yield number;
}

async function* slowNumbers(items: number): AsyncGenerator<number> {
  for (let number = 0; number < items; number += 1) {
    if (number % 7 === 0) await new Promise((turn) => setImmediate(turn));
    yield number;
  }
}

/** An input whose iterator has nothing but `next`, and may answer now or later. */
function bare(items: number): AsyncIterable<number> {
  return {
    [Symbol.asyncIterator]: () => {
      let next = 0;
      return {
        next: (): Promise<IteratorResult<number>> => {
          next += 1;
          return Promise.resolve(
            next <= items ? { done: false, value: next - 1 } : { done: true, value: undefined },
          );
        },
      };
    },
  };
}

const inputs: readonly (readonly [string, () => Iterable<number> | AsyncIterable<number>])[] = [
  ['an array', () => count(100)],
  ['a frozen array', () => Object.freeze(count(100))],
  [
    'an instance of a class of arrays',
    () => new (class Row extends Array<number> {})(...count(100)),
  ],
  ['an iterable', () => ({ [Symbol.iterator]: () => numbers(100) })],
  ['a generator', () => numbers(100)],
  ['a Set', () => new Set(count(100))],
  ['the values of a Map', () => new Map(count(100).map((each) => [`${each}`, each])).values()],
  ['an async generator', () => slowNumbers(100)],
  ['an async iterable without return()', () => bare(100)],
  ['a readable stream', () => Readable.from(count(100))],
];

for (const way of mapWays) {
  for (const [what, open] of inputs) {
    test(`${way.name}: ${what} is mapped in its order, with the index of each item`, async () => {
      const results = await pmap(open(), (item, index) => [item * 2, index], via(way));
      assert.deepEqual(
        results,
        count(100).map((item) => [item * 2, item]),
      );
    });
  }

  test(`${way.name}: a string is mapped by its characters, also those of two units`, async () => {
    const results = await pmap('aé🂡z', (each, index) => `${index}${each}`, via(way));
    assert.deepEqual(results, ['0a', '1é', '2🂡', '3z']);
  });

  test(`${way.name}: a Map is mapped by its entries`, async () => {
    const prices = new Map([
      ['pear', 3],
      ['fig', 4],
    ]);
    const results = await pmap(prices, ([name, price]) => `${name} ${price}`, via(way));
    assert.deepEqual(results, ['pear 3', 'fig 4']);
  });

  for (const [what, empty] of [
    ['an array', (): Iterable<number> => []],
    ['a Set', (): Iterable<number> => new Set<number>()],
    ['a string', () => ''],
    ['a generator', () => numbers(0)],
    ['an async generator', () => slowNumbers(0)],
  ] as const) {
    test(`${way.name}: ${what} without items gives an empty array`, async () => {
      const fail = (): never => {
        throw new Error('called');
      };
      assert.deepEqual(await pmap(empty() as AsyncIterable<number>, fail, via(way)), []);
    });
  }

  for (const [what, one] of [
    ['an array', (): Iterable<number> | AsyncIterable<number> => [0]],
    ['a generator', () => numbers(1)],
    ['an async generator', () => slowNumbers(1)],
  ] as const) {
    test(`${way.name}: ${what} with one item gives one result`, async () => {
      assert.deepEqual(await pmap(one(), (item) => item + 1, via(way)), [1]);
    });
  }

  test(`${way.name}: holes stay holes, and the mapper is not called for them`, async () => {
    const sparse: number[] = [];
    sparse[1] = 1;
    sparse[4] = 4;
    sparse.length = 7;
    const expected: string[] = [];
    expected[1] = '1 at 1';
    expected[4] = '4 at 4';
    expected.length = 7;
    const results = await pmap(sparse, (item, index) => `${item} at ${index}`, {
      ...via(way),
      chunk: 2,
    });
    assert.deepEqual(results, expected);
    assert.deepEqual(Object.keys(results), ['1', '4']);
  });

  test(`${way.name}: an array of holes gives as many holes`, async () => {
    const results = await pmap(new Array<number>(50), (item) => item, via(way));
    assert.deepEqual([results.length, Object.keys(results)], [50, []]);
  });

  test(`${way.name}: undefined is an item and a result, and no hole`, async () => {
    const results = await pmap(
      [1, undefined, 3],
      (item) => (item === 3 ? undefined : item),
      via(way),
    );
    assert.deepEqual(
      [results, Object.keys(results)],
      [
        [1, undefined, undefined],
        ['0', '1', '2'],
      ],
    );
  });

  test(`${way.name}: -0, NaN, infinities and BigInts arrive as they are`, async () => {
    const items = [-0, 0, Number.NaN, Infinity, -Infinity, 2n ** 80n, -1n, null];
    assert.deepEqual(
      await pmap(items, (item) => [item, item], via(way)),
      items.map((item) => [item, item]),
    );
  });

  test(`${way.name}: ten thousand fractions come back as the same numbers, to the bit`, async () => {
    const items = count(10_000).map((each) => each / 3);
    assert.deepEqual(
      await pmap(items, (item) => item / 7, via(way)),
      items.map((item) => item / 7),
    );
  });

  test(`${way.name}: items and results keep their class, and what they are made of`, async () => {
    const items = count(20).map((each) => new Point(each, -each));
    const results = await pmap(items, (item) => new Point(item.sum + item.x, item.y), via(way));
    assert.ok(results.every((each) => each instanceof Point));
    assert.deepEqual(
      results,
      items.map(({ x, y }) => new Point(x, y)),
    );
  });

  test(`${way.name}: dates, maps, sets, errors and functions are items as well`, async () => {
    const items = [new Date(5), new Map([[1, 2]]), new Set([3]), new RangeError('far'), /x/g];
    const results = await pmap(
      items,
      (item) => [Object.prototype.toString.call(item), item],
      via(way),
    );
    assert.deepEqual(
      results.map(([tag]) => tag),
      ['Date', 'Map', 'Set', 'Error', 'RegExp'].map((tag) => `[object ${tag}]`),
    );
    assert.deepEqual(results[0]?.[1], new Date(5));
    const steps = [(value: number) => value + 1, (value: number) => value * 10];
    assert.deepEqual(await pmap(steps, (step) => step(5), via(way)), [6, 50]);
  });

  test(`${way.name}: what is pushed while an array is mapped is not mapped`, async () => {
    const items = count(40);
    const map = pmap(items, (item) => item + 1, { ...via(way), chunk: 1 });
    items.push(1000);
    assert.deepEqual(
      await map,
      count(40).map((item) => item + 1),
    );
  });

  test(`${way.name}: what is taken from an array before its turn becomes a hole`, async () => {
    const items = count(200);
    const map = pmap(items, (item) => item, { ...via(way), chunk: 1, lead: 4 });
    items.length = 100;
    const results = await map;
    assert.equal(results.length, 200);
    assert.deepEqual(Object.keys(results), count(100).map(String));
  });

  test(`${way.name}: what is added to a Set while it is read is mapped too`, async () => {
    const items = new Set([1]);
    const grow = (item: number): number => {
      if (item < 50) items.add(item + 1);
      return item;
    };
    const growing = {
      *[Symbol.iterator]() {
        for (const item of items) yield grow(item);
      },
    };
    assert.deepEqual(
      await pmap(growing, (item) => item, via(way)),
      count(50).map((item) => item + 1),
    );
  });
}

for (const way of workerWays) {
  test(`${way.name}: what a mapper does to an item of an array the caller does not see`, async () => {
    const items = [{ n: 1 }, { n: 2 }];
    const results = await pmap(
      items,
      (item) => {
        item.n *= 10;
        return item;
      },
      via(way),
    );
    assert.deepEqual(
      [items, results],
      [
        [{ n: 1 }, { n: 2 }],
        [{ n: 10 }, { n: 20 }],
      ],
    );
  });
}

test('promises among the items are refused with the way out, which is an async generator', async (t) => {
  const promises = (): (number | Promise<number>)[] => [1, Promise.resolve(2)];
  const way = { chunk: 1, pool: openPool(t, { size: 1 }) };
  await assert.rejects(
    pmap(promises(), (item) => item, way),
    { code: 'TRANSFER_UNSUPPORTED', message: /^the item cannot travel: it is a Promise: await it/ },
  );
  async function* awaited(): AsyncGenerator<number> {
    yield* promises();
  }
  assert.deepEqual(await pmap(awaited(), (item) => item + 1, way), [2, 3]);
});
