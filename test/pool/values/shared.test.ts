import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shared } from '../../../src/public.js';
import { waitFor } from '../../support/index.js';
import { openPool, ways } from '../calls/ways.js';

const shmWays = ways.filter(({ channel }) => channel === 'shm');

for (const way of shmWays) {
  test(`${way.name}: what a task writes into shared bytes the caller sees`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const bytes = shared(100_000);
    await pool.run((given: Buffer) => void given.fill(7), bytes);
    assert.ok(bytes.every((byte) => byte === 7));
  });

  test(`${way.name}: what the caller writes a running task sees`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const bytes = shared(64);
    const call = pool.run(async (given: Buffer) => {
      given[1] = 1;
      while (given[0] !== 9) await new Promise((resolve) => setImmediate(resolve));
      return 'seen';
    }, bytes);
    await waitFor(() => bytes[1] === 1);
    bytes[0] = 9;
    assert.equal(await call, 'seen');
  });

  test(`${way.name}: shared bytes inside objects and results stay the same memory`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const first = shared(new Uint8Array([1, 2, 3]));
    const second = shared(8);
    const answer = await pool.run(
      (given: { inner: { bytes: Buffer }[]; second: Buffer }) => {
        const bytes = given.inner[0]?.bytes ?? Buffer.alloc(0);
        bytes[0] = 50;
        given.second[7] = 60;
        return { back: bytes, second: given.second };
      },
      { inner: [{ bytes: first }], second },
    );
    assert.deepEqual([first[0], second[7]], [50, 60]);
    first[1] = 51;
    assert.deepEqual([...answer.back], [50, 51, 3]);
    second[0] = 61;
    assert.equal(answer.second[0], 61);
  });

  test(`${way.name}: memory that a task shares lives as long as the caller holds it`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const bytes = await pool.run(() => shared(Buffer.alloc(200_000, 3)));
    await pool.run((given: Buffer) => void given.fill(4, 0, 10), bytes);
    assert.deepEqual([bytes[0], bytes[9], bytes[10], bytes.length], [4, 4, 3, 200_000]);
  });

  test(`${way.name}: two workers see the same shared bytes`, async (t) => {
    const pool = openPool(t, { size: 2 }, way);
    const counters = new Int32Array(shared(8).buffer, 0, 2);
    const meet = async (mine: number, given: Int32Array): Promise<number> => {
      Atomics.add(given, mine, 1);
      while (Atomics.load(given, 1 - mine) === 0) await new Promise((done) => setImmediate(done));
      return Atomics.load(given, 1 - mine);
    };
    const both = [pool.run(meet, 0, counters), pool.run(meet, 1, counters)];
    assert.deepEqual(await Promise.all(both), [1, 1]);
  });
}

for (const way of ways.filter(({ channel }) => channel !== 'shm')) {
  test(`${way.name}: shared bytes travel as a copy where there is no shared memory`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const bytes = shared(new Uint8Array([1, 2, 3]));
    const back = await pool.run((given: Buffer) => {
      given[0] = 9;
      return given;
    }, bytes);
    assert.deepEqual([...back], [9, 2, 3]);
    assert.equal(bytes[0], 1);
  });
}

for (const size of [-1, 1.5, Number.NaN, '5', undefined, null, {}]) {
  test(`shared(${JSON.stringify(size)}) is OPTION_INVALID`, () => {
    assert.throws(() => Reflect.apply(shared, undefined, [size]), { code: 'OPTION_INVALID' });
  });
}

test('a failed allocation of shared memory is SHARED_MEMORY_FULL or OPTION_INVALID', () => {
  assert.throws(
    () => shared(Number.MAX_SAFE_INTEGER),
    (error: { code?: string }) =>
      error.code === 'SHARED_MEMORY_FULL' || error.code === 'OPTION_INVALID',
  );
});
