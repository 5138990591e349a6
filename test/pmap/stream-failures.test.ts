// A stream in order gives the result of every item before the first that failed, as a loop would, in any
// chunk size, however the item failed and whichever chunk was faster.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pmap } from '../../src/public.js';
import { deadlineMs } from '../pool/calls/ways.js';
import { random, withDeadline } from '../support/index.js';
import { count, mapWays, via } from './ways.js';

const runs = Number(process.env['MANYCORE_RUNS'] ?? 12);

/** Ways in which an item fails. */
const failings = ['throws', 'rejects', 'rejects later', 'gives what cannot travel'] as const;

interface Plan {
  readonly failing: Readonly<Record<number, (typeof failings)[number]>>;
  readonly slow: readonly number[];
  readonly isAsync: boolean;
}

function mapper({ failing, slow, isAsync }: Plan): (item: number) => unknown {
  return (item) => {
    if (slow.includes(item)) {
      const end = performance.now() + 3;
      while (performance.now() < end);
    }
    const error = (): RangeError => new RangeError(`not ${item}`);
    switch (failing[item]) {
      case 'throws':
        throw error();
      case 'rejects':
        return Promise.reject(error());
      case 'rejects later':
        return new Promise((_, reject) => setTimeout(() => reject(error()), 2));
      case 'gives what cannot travel':
        return new WeakMap();
      default:
        return isAsync && item % 3 === 0 ? Promise.resolve(item) : item;
    }
  };
}

for (const way of mapWays) {
  test(`${way.name}: every result before the first failure comes, then the failure`, async (t) => {
    const { integer, pick } = random(t);
    for (let run = 0; run < runs; run += 1) {
      const items = integer(1, 400);
      const failingItems = count(integer(1, 4)).map(() => integer(0, items));
      const kinds = way.way === undefined ? failings.slice(0, 3) : failings;
      const plan: Plan = {
        failing: Object.fromEntries(failingItems.map((item) => [item, pick(kinds)])),
        slow: count(3).map(() => integer(0, items)),
        isAsync: pick([true, false]),
      };
      const chunk = pick(['auto', 1, 2, 7, 50, 1000] as const);
      const lead = pick(['auto', 1, 5, 1000] as const);
      const input = pick([() => count(items), () => count(items).values()])();
      const stream = pmap.stream(input, mapper(plan), { ...via(way), chunk, lead });
      const first = Math.min(...failingItems);
      const seen: unknown[] = [];
      const read = async (): Promise<void> => {
        for await (const result of stream) seen.push(result);
      };
      const what = `${JSON.stringify(plan)}, chunk ${chunk}, lead ${lead}`;
      await assert.rejects(withDeadline(read(), deadlineMs, `the end of ${what}`), (error) => {
        assert.equal(Reflect.get(Object(error), 'itemIndex'), first, what);
        return true;
      });
      assert.deepEqual(seen, count(first), what);
    }
  });

  test(`${way.name}: a stream as results come gives those of the failed chunk too`, async () => {
    const stream = pmap.stream(
      count(10),
      mapper({ failing: { 7: 'throws' }, slow: [], isAsync: false }),
      {
        ...via(way),
        chunk: 10,
        ordered: false,
      },
    );
    const seen: unknown[] = [];
    await assert.rejects(async () => {
      for await (const result of stream) seen.push(result);
    }, RangeError);
    assert.deepEqual(seen, count(7));
  });
}
