// env and execArgv as functions: each worker gets its own, by a place that no other worker of its pool has.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Pool } from '../../../src/public.js';
import { waitFor } from '../../support/index.js';
import { openPool, ways } from '../calls/ways.js';

const placeOf = (): string | undefined => process.env['PLACE'];

for (const way of ways) {
  test(`${way.name}: env by place: the lowest one that is free, and again when its worker has left`, async (t) => {
    const env = (place: number) => ({ PLACE: String(place) });
    const pool = openPool(t, { size: { min: 0, max: 3 }, env }, way);
    await pool.warm();
    assert.deepEqual((await pool.runOnEach(placeOf)).sort(), ['0', '1', '2']);
    await assert.rejects(
      pool.run(() => process.exit(1)),
      { code: 'WORKER_EXITED' },
    );
    await pool.warm();
    assert.deepEqual((await pool.runOnEach(placeOf)).sort(), ['0', '1', '2']);
    pool.resize(1);
    await waitFor(() => pool.stats().workers.length === 1);
    await pool.recycle();
    assert.equal(await pool.run(placeOf), '0');
  });
}

test('execArgv by place: each process has its own flags', async (t) => {
  const execArgv = (place: number) => [`--stack-trace-limit=${20 + place}`];
  const pool = openPool(t, { size: 2, execArgv });
  await pool.warm();
  const limits = await pool.runOnEach(() => Error.stackTraceLimit);
  assert.deepEqual(limits.sort(), [20, 21]);
});

const wrong: [what: string, option: 'env' | 'execArgv', make: () => unknown, message: RegExp][] = [
  ['no object', 'env', () => 'x', /env at place 0 is "x": it must be an object of strings/],
  [
    'a promise that is rejected',
    'env',
    () => Promise.reject(new Error('later')),
    /returned at once/,
  ],
  ['no string in env', 'env', () => ({ A: 1 }), /A of env at place 0 is 1: it must be a string/],
  ['no flags', 'execArgv', () => ['--a', 2], /execArgv at place 0/],
];
for (const [what, option, make, message] of wrong) {
  test(`a function of ${option} that returns ${what} ends all starts at once`, async (t) => {
    const pool = openPool(t, Object.fromEntries([[option, make]]));
    await assert.rejects(
      pool.run(() => 1),
      { code: 'WORKER_START_FAILED', message },
    );
  });
}

test('a place whose function throws takes no call from the workers that start', async (t) => {
  const env = (place: number) => {
    if (place === 1) throw new Error('no database 1');
    return {};
  };
  for (const worker of ['process', 'thread'] as const) {
    const pool = openPool(t, { size: 2, worker, env });
    const numbers = [0, 1, 2, 3, 4, 5];
    const calls = numbers.map((n) => pool.run((each: number) => each, n));
    assert.deepEqual(await Promise.all(calls), numbers);
    assert.equal(pool.stats().workers.length, 1);
  }
});

test('a function of env that throws ends all starts at once, and is their cause', async (t) => {
  const thrown = new Error('no port left');
  const env = () => {
    throw thrown;
  };
  const pool = openPool(t, { size: 1, env });
  await assert.rejects(
    pool.run(() => 1),
    (error: Error) =>
      /env at place 0 threw: no port left/.test(error.message) &&
      error.cause instanceof Error &&
      error.cause.cause === thrown,
  );
});

test('env and execArgv that are neither are refused when the pool is made', () => {
  for (const options of [{ env: 1 }, { execArgv: 1 }]) {
    assert.throws(() => Reflect.construct(Pool, [options]), { code: 'OPTION_INVALID' });
  }
});
