// Maps over typed arrays: what comes out has the class of what went in, lies in shared memory where
// workers write it in place, and may be the items themselves.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pmap, shared, type TypedArray } from '../../src/public.js';
import { library, runProgram } from '../faults/child.js';
import { deadlineMs, Gate, openPool } from '../pool/calls/ways.js';
import { blockUntil } from '../pool/tasks.js';
import { waitFor } from '../support/index.js';
import { count, mapWays, sharedPool, turns, via, workerWays } from './ways.js';

const numbers = [-1.5, -0, 0, 1, 2.5, 127, 200, 300, 2 ** 31, 2 ** 40, Number.NaN, Infinity];
const bigints = [-1n, 0n, 1n, 2n ** 40n, 2n ** 63n, 2n ** 64n - 1n];

const ofNumbers: readonly TypedArray[] = [
  new Int8Array(numbers),
  new Uint8Array(numbers),
  new Uint8ClampedArray(numbers),
  new Int16Array(numbers),
  new Uint16Array(numbers),
  new Int32Array(numbers),
  new Uint32Array(numbers),
  new Float32Array(numbers),
  new Float64Array(numbers),
];
const ofBigints = [new BigInt64Array(bigints), new BigUint64Array(bigints)];

/** Many doubles in memory that workers see. */
function sharedDoubles(items: number): Float64Array {
  const doubles = new Float64Array(shared(items * 8).buffer, 0, items);
  for (let at = 0; at < items; at += 1) doubles[at] = at;
  return doubles;
}

for (const way of mapWays) {
  for (const items of ofNumbers) {
    const name = items[Symbol.toStringTag];
    test(`${way.name}: a map over ${name} gives what its own map() gives`, async () => {
      const results = await pmap(items, (item, index) => Number(item) * 2 + index, via(way));
      const mapped = Reflect.apply(items.map, items, [
        (item: number, index: number) => item * 2 + index,
      ]);
      assert.deepEqual(results, mapped);
      assert.equal(Object.getPrototypeOf(results), Object.getPrototypeOf(items));
    });
  }

  for (const items of ofBigints) {
    const name = items[Symbol.toStringTag];
    test(`${way.name}: a map over ${name} gives what its own map() gives`, async () => {
      const results = await pmap(items, (item) => BigInt(item) * 3n, via(way));
      const mapped = Reflect.apply(items.map, items, [(item: bigint) => item * 3n]);
      assert.deepEqual(results, mapped);
    });
  }

  test(`${way.name}: a map over a Buffer gives a Buffer`, async () => {
    const results = await pmap(Buffer.from('abc'), (byte) => byte + 1, via(way));
    assert.ok(Buffer.isBuffer(results));
    assert.equal(results.toString(), 'bcd');
  });

  test(`${way.name}: of a view only its own part is mapped`, async () => {
    const whole = new Int32Array(count(100));
    const results = await pmap(
      whole.subarray(40, 50),
      (item, index) => item * 10 + index,
      via(way),
    );
    assert.deepEqual(results, new Int32Array(count(10).map((index) => (40 + index) * 10 + index)));
    assert.deepEqual(whole, new Int32Array(count(100)));
  });

  test(`${way.name}: of a view in shared memory only its own part is mapped in place`, async () => {
    const whole = sharedDoubles(100);
    const part = whole.subarray(40, 50);
    await pmap(part, (item) => -item, { ...via(way), into: part, chunk: 3 });
    const expected = new Float64Array(count(100)).map((item) =>
      item >= 40 && item < 50 ? -item : item,
    );
    assert.deepEqual(whole, expected);
  });

  test(`${way.name}: a typed array without items gives one without items`, async () => {
    assert.deepEqual(await pmap(new Float32Array(0), () => 1, via(way)), new Float32Array(0));
    assert.deepEqual(await pmap(Buffer.alloc(0), () => 1, via(way)), Buffer.alloc(0));
  });

  test(`${way.name}: a million doubles come out in their order`, async () => {
    const items = new Float64Array(1_000_000).map((_, index) => index);
    const results = await pmap(items, (item) => item + 0.5, via(way));
    const wrong = results.findIndex((result, index) => result !== index + 0.5);
    assert.deepEqual([results.length, wrong], [1_000_000, -1]);
  });

  for (const [what, make] of [
    ['of ordinary memory', () => new Float64Array(count(1000))],
    ['of shared memory', () => sharedDoubles(1000)],
  ] as const) {
    test(`${way.name}: into the items: an array ${what} is mapped in place`, async () => {
      const items = make();
      const before = items.slice();
      const results = await pmap(items, (item) => item * 2, { ...via(way), into: items });
      assert.equal(results, items);
      assert.deepEqual(
        items,
        before.map((item) => item * 2),
      );
    });
  }

  test(`${way.name}: into another array of another class the results are converted`, async () => {
    const into = new Uint8ClampedArray(4);
    const results = await pmap(new Float64Array([-5, 1.4, 99, 1e9]), (item) => item, {
      ...via(way),
      into,
    });
    assert.equal(results, into);
    assert.deepEqual([...into], [0, 1, 99, 255]);
  });

  test(`${way.name}: an async mapper fills a typed array`, async () => {
    const half = async (item: number): Promise<number> => item / 2;
    assert.deepEqual(
      await pmap(new Float32Array(count(100)), half, { ...via(way), chunk: 9 }),
      new Float32Array(count(100).map((item) => item / 2)),
    );
  });

  test(`${way.name}: a mapper that returns nothing fills with what its class makes of undefined`, async () => {
    const nothing = (): number => Reflect.get({}, 'nothing');
    assert.deepEqual(
      await pmap(new Float64Array(3), nothing, via(way)),
      new Float64Array(3).fill(Number.NaN),
    );
    assert.deepEqual(await pmap(new Int8Array(3).fill(7), nothing, via(way)), new Int8Array(3));
  });

  test(`${way.name}: a result that its class refuses rejects with its index`, async () => {
    const map = pmap(new BigInt64Array(8), (_, index) => (index === 5 ? JSON.parse('1') : 1n), {
      ...via(way),
      chunk: 3,
    });
    await assert.rejects(map, { name: 'TypeError', itemIndex: 5 });
  });

  test(`${way.name}: outcomes of a typed array are a list`, async () => {
    const odd = (item: number): number => {
      if (item === 2) throw new RangeError('two');
      return item * 10;
    };
    const outcomes = await pmap(new Uint8Array([1, 2, 3]), odd, { ...via(way), settled: true });
    assert.deepEqual(
      outcomes.map((each) => (each.status === 'fulfilled' ? each.value : each.reason.message)),
      [10, 'two', 30],
    );
  });

  test(`${way.name}: first come, first served changes nothing where results have their places`, async () => {
    const items = new Uint16Array(count(5000));
    const results = await pmap(items, (item) => item, { ...via(way), ordered: false, chunk: 7 });
    assert.deepEqual(results, items);
  });

  for (const [what, into] of [
    ['a shorter array', new Float64Array(3)],
    ['a longer array', new Float64Array(5)],
    ['an ordinary array', [0, 0, 0, 0]],
    ['a DataView', new DataView(new ArrayBuffer(4))],
  ] as const) {
    test(`${way.name}: into ${what} is OPTION_INVALID`, async () => {
      const options = { ...via(way), into };
      const map = Reflect.apply(pmap, undefined, [
        new Float64Array(4),
        (item: number) => item,
        options,
      ]);
      await assert.rejects(map, { code: 'OPTION_INVALID', message: /^into is / });
    });
  }
}

for (const way of workerWays.filter(({ way: { channel } }) => channel === 'shm')) {
  test(`${way.name}: workers write in place: the caller sees a result before the map has ended`, async (t) => {
    const gate = new Gate(t);
    const [file, mark] = [gate.file, gate.mark('last')];
    const items = sharedDoubles(10);
    const map = pmap(items, (item) => (item === 9 ? blockUntil(file, mark, 90) : item * 10), {
      pool: openPool(t, { size: 1 }, way.way),
      into: items,
      chunk: 10,
    });
    await gate.reached('last');
    assert.deepEqual([...items], [0, 10, 20, 30, 40, 50, 60, 70, 80, 9]);
    gate.open();
    await map;
    assert.equal(items[9], 90);
  });

  test(`${way.name}: shared items are not copied: the mapper sees what is written to them meanwhile`, async (t) => {
    const gate = new Gate(t);
    const [file, mark] = [gate.file, gate.mark('first')];
    const items = sharedDoubles(10);
    const map = pmap(items, (item) => (item === 0 ? blockUntil(file, mark, 0) : item), {
      pool: openPool(t, { size: 1 }, way.way),
      chunk: 10,
    });
    await gate.reached('first');
    items[9] = 99;
    gate.open();
    assert.deepEqual([...(await map)], [0, 1, 2, 3, 4, 5, 6, 7, 8, 99]);
  });

  for (const [what, make] of [
    ['of ordinary memory', () => new Float64Array(count(1000))],
    ['of shared memory', () => sharedDoubles(1000)],
  ] as const) {
    test(`${way.name}: the result of a map over an array ${what} is shared memory`, async () => {
      const items = make();
      const results = await pmap(items, (item) => item, via(way));
      assert.notEqual(results.buffer, items.buffer);
      await sharedPool(way.way).run((given: Float64Array) => void given.fill(7), results);
      assert.deepEqual([results[0], results[999]], [7, 7]);
    });
  }

  test(`${way.name}: the result of a map is there when its pool is gone`, async (t) => {
    const pool = openPool(t, { size: 2 }, way.way);
    const results = await pmap(new Float64Array(count(50_000)), (item) => item + 1, { pool });
    await pool.close();
    await turns(5);
    assert.equal(
      results.findIndex((result, index) => result !== index + 1),
      -1,
    );
  });
}

for (const way of workerWays.filter(({ way: { channel } }) => channel !== 'shm')) {
  test(`${way.name}: shared items are copied where there is no shared memory, and the results come back`, async () => {
    const items = sharedDoubles(1000);
    const map = pmap(items, (item) => item + 1, { ...via(way), chunk: 10 });
    await waitFor(() => map.stats().chunks > 0, deadlineMs, 'a chunk');
    assert.deepEqual(
      await map,
      new Float64Array(count(1000)).map((item) => item + 1),
    );
    assert.deepEqual(items, new Float64Array(count(1000)));
  });
}

for (const [what, make] of [
  ['doubles', 'new Float64Array(200_000).fill(2)'],
  ['BigInts', 'new BigInt64Array(200_000).fill(2n)'],
] as const) {
  test(`where no shared memory is left the results of ${what} go into ordinary memory`, async (t) => {
    const { stdout, stderr } = await runProgram(
      t,
      `import { Pool, pmap } from ${JSON.stringify(library)};
       const pool = new Pool({ size: 1 });
       await pool.warm();
       const items = ${make};
       process.env.MANYCORE_REFUSE = 'mapping';
       const map = pmap(items, (item) => item + item, { pool, chunk: 1000 });
       delete process.env.MANYCORE_REFUSE;
       const results = await map.catch((error) => [error.message]);
       console.log(results.constructor.name, results.length, String(results[199_999]));
       await pool.close();`,
    );
    assert.equal(
      stdout,
      `${what === 'doubles' ? 'Float64Array' : 'BigInt64Array'} 200000 4\n`,
      stderr,
    );
  });
}

test('an into that is neither the items nor apart from them is OPTION_INVALID', async () => {
  const memory = new Float64Array(16);
  const items = memory.subarray(0, 8);
  const small = new Float32Array(memory.buffer, 0, 8);
  for (const into of [memory.subarray(1, 9), memory.subarray(7, 15), small]) {
    await assert.rejects(
      pmap(items, (item) => item, { into, channel: 'inline' }),
      { code: 'OPTION_INVALID', message: /the items themselves, or memory apart from theirs$/ },
    );
  }
  const apart = memory.subarray(8, 16);
  assert.equal(await pmap(items, (item) => item + 1, { into: apart, channel: 'inline' }), apart);
  assert.deepEqual([...memory], [...new Array(8).fill(0), ...new Array(8).fill(1)]);
});

test('the refusal of an into of another length has the right length', async () => {
  await assert.rejects(
    pmap(new Int8Array(4), (item) => item, { into: new Float64Array(2) }),
    {
      message:
        'into is Float64Array of length 2: it must be a typed array of 4 items, as many as there are',
    },
  );
});

test('the refusal of into outside of a map over a typed array names its use', async () => {
  const options = { into: new Int8Array(1) };
  for (const map of [
    () => Reflect.apply(pmap, undefined, [[1], () => 1, options]),
    () => Reflect.apply(pmap.filter, undefined, [new Int8Array(1), () => 1, options]),
  ]) {
    await assert.rejects(map, { code: 'OPTION_INVALID', message: /only pmap over a typed array/ });
  }
});
