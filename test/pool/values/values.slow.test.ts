// One value, five roads: as an argument, a capture, a result, an item of a map and the body of a
// message it means the same, in workers of each kind over each channel. The value is described where it
// arrived. A campaign: `MANYCORE_RUNS=1000 npm test -- pool/values`.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createCopy } from '../../../src/bus/delivery/copy.js';
import { type Pool, pmap } from '../../../src/public.js';
import { describe, isGoodRefusal } from '../../support/describe.js';
import { random, seeded, waitFor } from '../../support/index.js';
import { Bytes, Failure, List, makeValue, Point } from '../../support/values.js';
import { openPool, ways } from '../calls/ways.js';

const runs = Number(process.env['MANYCORE_RUNS'] ?? 15);

/** In a list: a promise would be awaited, and the list is part of the value. */
function made(seed: number): unknown[] {
  return [makeValue(seeded(seed))];
}

const roads: Record<string, (pool: Pool, seed: number) => Promise<unknown>> = {
  argument: (pool, seed) => pool.run((value) => describe(value), made(seed)),
  capture: (pool, seed) => {
    const value = made(seed);
    return pool.run(() => describe(value));
  },
  result: async (pool, seed) => describe(await pool.run((from) => made(from), seed)),
  item: async (pool, seed) => (await pmap([made(seed)], (value) => describe(value), { pool }))[0],
  body: async (_pool, seed) => describe(copy(made(seed))),
};

/** A copy in the same loop does not wait for modules: those of the values are loaded first. */
const copy = createCopy();
const loaded = waitFor(() => copy([new Point(1), new Bytes(1), List.of(1), new Failure('')]));

for (const way of ways) {
  test(`${way.name}: a value means the same on every road`, async (t) => {
    const chance = random(t);
    await loaded;
    const pool = openPool(t, { size: 1 }, way);
    for (let run = 0; run < runs; run += 1) {
      const seed = chance.integer(0, 2 ** 32);
      const expected = describe(made(seed));
      const refusedOn: string[] = [];
      for (const [road, take] of Object.entries(roads)) {
        try {
          assert.equal(await take(pool, seed), expected, `seed ${seed} as ${road}`);
        } catch (error) {
          if (error instanceof assert.AssertionError) throw error;
          assert.ok(isGoodRefusal(error), `seed ${seed} as ${road}: ${error}`);
          refusedOn.push(road);
        }
      }
      const isOneVerdict = refusedOn.length === 0 || refusedOn.length === Object.keys(roads).length;
      assert.ok(isOneVerdict, `seed ${seed} is refused as ${refusedOn}, and nowhere else`);
    }
  });
}

/** A class whose instances a worker cannot make. */
class Locked {
  [Symbol.for('manycore.send')](): string {
    return 'no key';
  }
  static [Symbol.for('manycore.receive')](data: string): never {
    throw new Error(data);
  }
}

for (const way of ways) {
  test(`${way.name}: what cannot be received is refused with its class, its path and the cause`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const locked = new Locked();
    const refusal = (path: RegExp) => (error: unknown) => {
      assert.ok(isGoodRefusal(error), String(error));
      assert.ok(error instanceof Error);
      assert.match(error.message, /an instance of Locked .*threw: no key; mend that method/);
      assert.match(error.message, path);
      assert.ok(error.cause instanceof Error && error.cause.message === 'no key');
      return true;
    };
    const count = (list: readonly unknown[]): number => list.length;
    await assert.rejects(pool.run(count, [1, locked]), refusal(/path: the arguments\[0\]\[1\]/));
    await assert.rejects(
      pool.run(() => locked),
      refusal(/path: the function.*variable locked/),
    );
    await assert.rejects(
      pool.run(() => ({ list: [new Locked()] })),
      refusal(/path: the result\.list\[0\]/),
    );
    assert.equal(await pool.run(count, []), 0);
  });
}

const rows = Object.assign([{ a: 1 }], { columns: ['a'] }); // what parsers of CSV return

for (const way of ways) {
  test(`${way.name}: names of arrays, frozen objects, getters and symbols stay`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    assert.deepEqual(await pool.run((given) => given.columns, rows), ['a']);
    assert.deepEqual((await pool.run(() => rows)).columns, ['a']);
    assert.equal(await pool.run((given) => Object.isFrozen(given), Object.freeze({ a: 1 })), true);
    assert.equal(Object.isFrozen(await pool.run(() => Object.freeze({ a: 1 }))), true);
    assert.equal(await pool.run((given) => typeof given, Symbol('a')), 'symbol');
    const counting = {
      count: 0,
      get next() {
        this.count += 1;
        return this.count;
      },
    };
    assert.deepEqual(await pool.run((given) => [given.next, given.next], counting), [1, 2]);
  });

  test(`${way.name}: calls work while Object.prototype has an enumerable property`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    Object.defineProperty(Object.prototype, 'extend', {
      value: () => {},
      enumerable: true,
      configurable: true,
      writable: true,
    });
    t.after(() => Reflect.deleteProperty(Object.prototype, 'extend'));
    assert.equal(await pool.run(() => 1), 1);
    assert.equal(await pool.run((value) => value + 1, 1), 2);
    assert.equal(await pool.run((value) => value.a, { a: 3 }), 3);
  });
}
