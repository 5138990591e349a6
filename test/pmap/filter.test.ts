// Filters: the caller's own items come back, in their order.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pmap, shared, type TypedArray } from '../../src/public.js';
import { spinMs } from '../pool/tasks.js';
import { Point } from './mappers.js';
import { count, mapWays, via, workerWays } from './ways.js';

const isThird = (item: number): boolean => item % 3 === 0;
const thirds = count(1000).filter(isThird);

async function* later(items: number): AsyncGenerator<number> {
  for (let item = 0; item < items; item += 1) {
    if (item % 100 === 0) await new Promise((turn) => setImmediate(turn));
    yield item;
  }
}

for (const way of mapWays) {
  for (const [what, open] of [
    ['an array', (): Iterable<number> | AsyncIterable<number> => count(1000)],
    ['a generator', () => count(1000).values()],
    ['a Set', () => new Set(count(1000))],
    ['an async generator', () => later(1000)],
  ] as const) {
    test(`${way.name}: of ${what} the items stay for which the predicate returns true, in order`, async () => {
      assert.deepEqual(await pmap.filter(open(), isThird, via(way)), thirds);
    });
  }

  test(`${way.name}: the order of what stays does not depend on which chunk is first`, async () => {
    const slowFirst = (item: number): boolean => {
      if (item < 5) spinMs(3);
      return item % 3 === 0;
    };
    assert.deepEqual(await pmap.filter(count(1000), slowFirst, { ...via(way), chunk: 5 }), thirds);
  });

  test(`${way.name}: as they come the same items stay`, async () => {
    const kept = await pmap.filter(count(1000), isThird, { ...via(way), ordered: false, chunk: 7 });
    assert.deepEqual(
      kept.sort((a, b) => a - b),
      thirds,
    );
  });

  test(`${way.name}: what stays are the caller's own objects, untouched`, async () => {
    const items = count(50).map((x) => ({ point: new Point(x, 0), seen: false }));
    const isOdd = ({ point }: { point: Point }): boolean => point.sum % 2 === 1;
    const kept = await pmap.filter(items, isOdd, { ...via(way), chunk: 4 });
    assert.equal(kept.length, 25);
    assert.ok(kept.every((item, at) => item === items[2 * at + 1]));
  });

  test(`${way.name}: anything that counts as true keeps an item, also a promise of it`, async () => {
    const answers = [1, 0, '', 'no', null, undefined, [], Number.NaN, 0n, 1n, -0];
    const kept = await pmap.filter(answers, (answer) => answer, { ...via(way), chunk: 4 });
    assert.deepEqual(kept, answers.filter(Boolean));
    const later = await pmap.filter(answers, async (answer) => answer, via(way));
    assert.deepEqual(later, answers.filter(Boolean));
  });

  test(`${way.name}: the predicate gets the index, and holes are left out`, async () => {
    const items = ['a', 'b', 'c', 'd', 'e'];
    delete items[1];
    const kept = await pmap.filter(items, (_, index) => index !== 3, { ...via(way), chunk: 2 });
    assert.deepEqual(kept, ['a', 'c', 'e']);
  });

  for (const items of [
    new Int8Array([3, -3, 4, 9]),
    new Float64Array([3, -3, 4.5, 9]),
    new Uint8ClampedArray([3, 6, 4, 9]),
    new BigUint64Array([3n, 6n, 4n, 9n]),
    Buffer.from([3, 6, 4, 9]),
  ] as TypedArray[]) {
    const name = Buffer.isBuffer(items) ? 'Buffer' : items[Symbol.toStringTag];
    test(`${way.name}: what stays of ${name} is one of that class`, async () => {
      const predicate = (item: number | bigint): boolean => Number(item) % 3 === 0;
      const kept = await pmap.filter(items, predicate, via(way));
      assert.deepEqual(kept, Reflect.apply(items.filter, items, [predicate]));
      assert.equal(Object.getPrototypeOf(kept), Object.getPrototypeOf(items));
    });
  }

  test(`${way.name}: of a view in shared memory only its own items stay`, async () => {
    const whole = new Int32Array(shared(400).buffer, 0, 100);
    whole.set(count(100));
    const part = whole.subarray(50);
    const kept = await pmap.filter(part, (item) => item % 2 === 0, { ...via(way), chunk: 7 });
    assert.deepEqual(
      [...kept],
      count(25).map((at) => 50 + 2 * at),
    );
  });

  test(`${way.name}: a predicate that throws names the item`, async () => {
    const predicate = (item: number): boolean => {
      if (item === 44) throw new RangeError('no answer');
      return true;
    };
    const filter = pmap.filter(count(60), predicate, { ...via(way), chunk: 7 });
    await assert.rejects(filter, { name: 'RangeError', itemIndex: 44 });
  });

  test(`${way.name}: what a filter has no use for is refused`, async () => {
    for (const [args, code] of [
      [[5, () => true], 'OPTION_INVALID'],
      [[[1], 'yes'], 'TASK_NOT_FUNCTION'],
      [[[1], () => true, { settled: true }], 'OPTION_INVALID'],
      [[new Int8Array(1), () => true, { into: new Int8Array(1) }], 'OPTION_INVALID'],
    ] as const) {
      await assert.rejects(Reflect.apply(pmap.filter, undefined, args), { code });
    }
  });
}

for (const way of workerWays) {
  test(`${way.name}: what a predicate answers need not travel`, async () => {
    const kept = await pmap.filter(count(10), (item) => item > 4 && new WeakRef({}), via(way));
    assert.deepEqual(kept, [5, 6, 7, 8, 9]);
  });
}
