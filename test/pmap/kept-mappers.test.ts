// Mappers that are made anew for each map: equal ones stay in the workers, and none that changes what it captured
// begins with what an earlier map left.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pmap } from '../../src/public.js';
import { parentExporter } from '../../src/worker/index.js';
import { openPool } from '../pool/calls/ways.js';
import { withoutNativeCapture } from '../support/closures.js';
import { count, workerWays } from './ways.js';

const items = count(20);
const maps = 24;
const double = (item: number): number => 2 * item;

/** Makers of mappers that a call changes: each gives the number of its calls so far. */
const changing: Readonly<Record<string, () => (item: number) => number>> = {
  'assigns a variable'() {
    let calls = 0;
    return () => {
      calls += 1;
      return calls;
    };
  },
  'changes a list'() {
    const seen: number[] = [];
    return (item) => seen.push(item);
  },
  'changes an object'() {
    const seen = { calls: 0 };
    return () => {
      seen.calls += 1;
      return seen.calls;
    };
  },
  'changes an object beside a helper'() {
    const seen = { calls: 0 };
    return () => {
      seen.calls += 1;
      return double(seen.calls) / 2;
    };
  },
  'assigns a variable beside a helper'() {
    let calls = 0;
    return () => {
      calls += 1;
      return double(calls) / 2;
    };
  },
  'keeps a count on itself'() {
    return function counted(): number {
      const calls = Number(Reflect.get(counted, 'calls') ?? 0) + 1;
      Reflect.set(counted, 'calls', calls);
      return calls;
    };
  },
  'assigns a variable by another function'() {
    let calls = 0;
    const add = (): number => {
      calls += 1;
      return calls;
    };
    return () => add();
  },
};

for (const { name, way } of workerWays) {
  for (const [what, make] of Object.entries(changing)) {
    test(`${name}: a mapper that ${what} begins anew in each map`, async (t) => {
      const pool = openPool(t, { size: 1 }, way);
      for (let turn = 0; turn < 12; turn += 1) {
        const results = await pmap(items, make(), { pool });
        assert.deepEqual(
          results,
          count(20).map((at) => at + 1),
          `map ${turn}`,
        );
      }
    });
  }

  test(`${name}: mappers with other values give their own results`, async (t) => {
    const pool = openPool(t, { size: 2 }, way);
    for (let turn = 0; turn < maps; turn += 1) {
      const more = turn % 3;
      const results = await pmap(items, (item) => double(item) + more, { pool });
      assert.deepEqual(
        results,
        items.map((item) => double(item) + more),
      );
    }
    const both = await Promise.all(
      [1, 2, 1, 3].map((more) => pmap(items, (item) => double(item) + more, { pool })),
    );
    assert.deepEqual(
      both.map(([first]) => first),
      [1, 2, 1, 3],
    );
  });

  test(`${name}: equal mappers are sent once`, { skip: withoutNativeCapture() }, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const map = async (): Promise<void> => {
      const more = 5;
      await pmap(items, (item) => double(item) + more, { pool });
    };
    for (let turn = 0; turn < maps; turn += 1) await map();
    const definition = t.mock.method(parentExporter(), 'definition');
    for (let turn = 0; turn < maps; turn += 1) await map();
    assert.equal(definition.mock.callCount(), 0);
  });
}

test('a map is alone until its pool has a call or another map', async (t) => {
  const pool = openPool(t, { size: 1 });
  const first = pool.pin(double);
  assert.equal(first.isAlone(), true);
  await pool.run(double, 1);
  assert.equal(first.isAlone(), false);
  const second = pool.pin(double);
  assert.deepEqual([first.isAlone(), second.isAlone()], [false, false]);
  first.unpin();
  second.unpin();
  const third = pool.pin(double);
  assert.equal(third.isAlone(), true);
  third.unpin();
  const pending = pool.run(double, 1);
  const behind = pool.pin(double);
  await pending;
  assert.equal(behind.isAlone(), false);
  behind.unpin();
});
