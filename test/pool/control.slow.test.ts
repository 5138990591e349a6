// Control of a working pool: another size, new workers, room, an end within a time.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { CodedError } from '../../src/public.js';
import { waitFor, withDeadline } from '../support/index.js';
import { deadlineMs, Gate, openPool, ways } from './calls/ways.js';
import { blockUntil } from './tasks.js';

function readyWorkers(pool: ReturnType<typeof openPool>): number {
  return pool.stats().workers.filter(({ state }) => state === 'ready').length;
}

for (const way of ways) {
  test(`${way.name}: size.min workers start with the pool, and no more`, async (t) => {
    const pool = openPool(t, { size: { min: 2, max: 4 } }, way);
    await waitFor(() => readyWorkers(pool) === 2);
    assert.equal(pool.stats().startedWorkers, 2);
  });

  test(`${way.name}: a worker that ended is replaced up to size.min, even without calls`, async (t) => {
    const pool = openPool(t, { size: { min: 2, max: 4 }, graceMs: 0 }, way);
    await pool.warm(2);
    const before = pool.stats().workers.map(({ id }) => id);
    await assert.rejects(
      pool.run(() => process.exit(1)),
      { code: 'WORKER_EXITED' },
    );
    await waitFor(() => readyWorkers(pool) === 2);
    const mark = new Gate(t).mark('begun'); // one that has not begun ends no worker
    const abort = new AbortController();
    const endless = pool.with({ signal: abort.signal }).run((file: string) => {
      writeFileSync(file, '');
      return new Promise(() => {});
    }, mark);
    await waitFor(() => existsSync(mark));
    abort.abort();
    await assert.rejects(endless, { code: 'ABORTED' });
    await pool.run(() => void setTimeout(() => process.exit(1), 1)); // idle when it ends
    await waitFor(() => pool.stats().exitedWorkers === 3 && readyWorkers(pool) === 2);
    const after = pool.stats().workers.map(({ id }) => id);
    assert.ok(!before.every((id) => after.includes(id)));
  });

  test(`${way.name}: warm(n) resolves when n workers are ready, warm() when all are`, async (t) => {
    const pool = openPool(t, { size: 3 }, way);
    await pool.warm(0);
    assert.equal(pool.stats().startedWorkers, 0);
    await pool.warm(1);
    assert.equal(pool.stats().startedWorkers, 1);
    await Promise.all([pool.warm(2), pool.warm()]);
    assert.equal(readyWorkers(pool), 3);
    await withDeadline(pool.warm(1000), deadlineMs, 'more than there may be');
    assert.equal(pool.stats().startedWorkers, 3);
    await assert.rejects(pool.warm(-1), { code: 'OPTION_INVALID' });
  });

  test(`${way.name}: resize() up gives more workers, and down lets them go after their tasks`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    await pool.warm();
    pool.resize(3);
    await pool.warm();
    assert.equal(readyWorkers(pool), 3);
    const gate = new Gate(t);
    const [open, mark] = [gate.file, gate.mark('busy')];
    const running = pool.run(() => blockUntil(open, mark, 'done'));
    await gate.reached('busy');
    pool.resize(1);
    await waitFor(() => pool.stats().workers.length === 1);
    gate.open();
    assert.equal(await running, 'done');
    assert.equal(pool.stats().lostWorkers, 0);
    pool.resize({ min: 2, max: 2 });
    await waitFor(() => readyWorkers(pool) === 2);
    assert.throws(() => pool.resize(0), { code: 'OPTION_INVALID' });
  });

  test(`${way.name}: recycle() replaces each worker, and loses no task`, async (t) => {
    const pool = openPool(t, { size: 2 }, way);
    await pool.warm();
    const before = pool.stats().workers.map(({ id }) => id);
    const calls = Array.from({ length: 50 }, (_, value) => pool.run((x: number) => x, value));
    await withDeadline(pool.recycle(), deadlineMs, 'the old workers leave');
    assert.deepEqual(await Promise.all(calls), [...calls.keys()]);
    assert.equal(await pool.run(() => 1), 1);
    const after = pool.stats().workers.map(({ id }) => id);
    assert.deepEqual(
      after.filter((id) => before.includes(id)),
      [],
    );
    assert.equal(pool.stats().lostWorkers, 0);
  });

  test(`${way.name}: a task behind one that takes long gets a worker that is still to start`, async (t) => {
    const pool = openPool(t, { size: { min: 1, max: 2 } }, way);
    const gate = new Gate(t);
    const [open, mark] = [gate.file, gate.mark('busy')];
    const task = (isLong: boolean): string => (isLong ? blockUntil(open, mark, 'long') : 'short');
    for (let count = 0; count < 30; count += 1) await pool.run(task, false);
    const long = pool.run(task, true);
    assert.equal(await withDeadline(pool.run(task, false), deadlineMs, 'the other'), 'short');
    gate.open();
    assert.equal(await long, 'long');
  });

  test(`${way.name}: hasRoom() keeps a producer below maxWaitingTasks`, async (t) => {
    for (const maxWaitingTasks of [0, 1, 5]) {
      const pool = openPool(t, { size: 1, maxWaitingTasks }, way);
      const results: Promise<number>[] = [];
      for (let value = 0; value < 100; value += 1) {
        await withDeadline(pool.hasRoom(), deadlineMs, 'room');
        results.push(pool.run((x: number) => x, value));
      }
      assert.deepEqual(await Promise.all(results), [...results.keys()]);
    }
  });

  test(`${way.name}: hasRoom() admits producers that wait at the same time one by one, in order`, async (t) => {
    for (const [size, maxWaitingTasks] of [
      [1, 0],
      [1, 1],
      [2, 1],
      [2, 3],
    ] as const) {
      const pool = openPool(t, { size, maxWaitingTasks }, way);
      const begun: number[] = [];
      const produce = async (value: number): Promise<number> => {
        await pool.hasRoom();
        begun.push(value);
        return pool.run((x: number) => x, value);
      };
      const values = [...Array(20).keys()];
      const results = Promise.all(values.map(produce));
      assert.deepEqual(await withDeadline(results, deadlineMs, 'all'), values);
      assert.deepEqual(begun, values);
    }
  });

  test(`${way.name}: room that a producer does not use is for the next`, async (t) => {
    const pool = openPool(t, { size: 1, maxWaitingTasks: 1 }, way);
    const asked = Array.from({ length: 5 }, () => pool.hasRoom());
    await withDeadline(Promise.all(asked), deadlineMs, 'all have had room');
    assert.equal(await pool.run((x: number) => x, 1), 1);
  });

  test(`${way.name}: cancelWaiting() rejects what waits and leaves what runs`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const gate = new Gate(t);
    const [open, mark] = [gate.file, gate.mark('busy')];
    const running = pool.run(() => blockUntil(open, mark, 'done'));
    await gate.reached('busy');
    const reason = new Error('another page');
    const waiting = [1, 2, 3].map((value) => pool.run((x: number) => x, value));
    const rejected = waiting.map((call) =>
      assert.rejects(call, { name: 'AbortError', code: 'ABORTED', cause: reason }),
    );
    assert.equal(pool.cancelWaiting(reason), 3);
    await Promise.all(rejected);
    gate.open();
    assert.equal(await running, 'done');
  });

  test(`${way.name}: close({ timeoutMs }) ends what takes longer`, async (t) => {
    const pool = openPool(t, { size: 1, graceMs: 50 }, way);
    const gate = new Gate(t);
    const [open, mark] = [gate.file, gate.mark('busy')];
    const running = assert.rejects(
      pool.run(() => blockUntil(open, mark, 1)),
      { code: 'POOL_CLOSED' },
    );
    await gate.reached('busy');
    await withDeadline(pool.close({ timeoutMs: 20 }), deadlineMs, 'close');
    await running;
    assert.deepEqual(pool.stats().workers, []);
  });

  test(`${way.name}: close({ timeoutMs }) waits for what ends in time`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const call = pool.run(() => 5);
    await withDeadline(pool.close({ timeoutMs: deadlineMs }), deadlineMs, 'close');
    assert.equal(await call, 5);
  });

  test(`${way.name}: an error after the answer is an error event of the pool`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const heard = once(pool, 'error').catch((error: unknown) => [error]);
    await pool.run(() => {
      setTimeout(() => {
        throw new RangeError('late');
      }, 1);
    });
    const [error] = await withDeadline(heard, deadlineMs, 'an error event');
    assert.ok(error instanceof CodedError && error.cause instanceof RangeError);
    assert.equal(error.code, 'WORKER_EXITED');
    assert.match(error.message, /ran no task, by an error that nothing caught: late$/);
  });

  test(`${way.name}: an error that nothing catches while a worker leaves is one, too`, async (t) => {
    const teardown = () =>
      new Promise(() => {
        setTimeout(() => {
          throw new RangeError('on the way out');
        }, 1);
      });
    const pool = openPool(t, { size: 1, graceMs: deadlineMs, teardown }, way);
    const heard = once(pool, 'error').catch((error: unknown) => [error]);
    await pool.run(() => 1);
    await pool.close();
    const [error] = await withDeadline(heard, deadlineMs, 'an error event');
    assert.ok(error instanceof CodedError && error.cause instanceof RangeError);
    assert.equal(pool.stats().lostWorkers, 0);
  });
}

test('a closed pool has no room and no other size', async (t) => {
  const pool = openPool(t, { size: 1, maxWaitingTasks: 0 });
  await pool.close();
  for (const ask of [() => pool.hasRoom(), () => pool.recycle(), async () => pool.resize(2)]) {
    await assert.rejects(ask(), { code: 'POOL_CLOSED' });
  }
  await assert.rejects(pool.close({ timeoutMs: -1 }), { code: 'OPTION_INVALID' });
});
