import assert from 'node:assert/strict';
import { test } from 'node:test';
import { taskSignal } from '../../../src/public.js';
import { withDeadline } from '../../support/index.js';
import { deadlineMs, Gate, openPool, ways } from '../calls/ways.js';
import { blockUntil, countCalls, crowd, spinMs } from '../tasks.js';

for (const way of ways) {
  test(`${way.name}: one worker runs tasks in the order of their calls`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const first = Array.from({ length: 40 }, () => pool.run(() => countCalls()));
    assert.deepEqual(
      await Promise.all(first),
      Array.from({ length: 40 }, (_, index) => index),
    );
    const second = Array.from({ length: 200 }, () => pool.run(() => countCalls()));
    assert.deepEqual(
      await Promise.all(second),
      Array.from({ length: 200 }, (_, index) => 40 + index),
    );
  });

  test(`${way.name}: of waiting tasks those of higher priority run first`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const gate = new Gate(t);
    const [open, mark] = [gate.file, gate.mark('blocker')];
    const blocker = pool.run(() => blockUntil(open, mark, 'open'));
    await gate.reached('blocker');
    const order = [0, -1, 5, 0, 5].map((priority) =>
      pool.with({ priority }).run(() => countCalls()),
    );
    gate.open();
    assert.equal(await blocker, 'open');
    assert.deepEqual(await Promise.all(order), [2, 4, 0, 3, 1]);
  });

  test(`${way.name}: a busy pool runs an inline call here and rejects one that must not wait`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const gate = new Gate(t);
    const [open, mark] = [gate.file, gate.mark('blocker')];
    const blocker = pool.run(() => blockUntil(open, mark, 'open'));
    await gate.reached('blocker');
    const isHere = (): boolean => taskSignal() === undefined;
    assert.equal(await pool.with({ whenBusy: 'inline' }).run(isHere), true);
    await assert.rejects(pool.with({ whenBusy: 'reject' }).run(isHere), { code: 'POOL_BUSY' });
    const queued = pool.with({ whenBusy: 'queue' }).run(isHere);
    assert.equal(pool.stats().waitingTasks, 1);
    gate.open();
    assert.equal(await queued, false);
    assert.equal(await blocker, 'open');
    assert.equal(await pool.with({ whenBusy: 'inline' }).run(isHere), false);
  });

  test(`${way.name}: a full queue refuses with POOL_QUEUE_FULL and takes calls again later`, async (t) => {
    const pool = openPool(t, { size: 1, maxWaitingTasks: 2 }, way);
    const gate = new Gate(t);
    const [open, mark] = [gate.file, gate.mark('blocker')];
    const blocker = pool.run(() => blockUntil(open, mark, 0));
    await gate.reached('blocker');
    const waiting = [pool.run(() => 1), pool.run(() => 2)];
    await assert.rejects(
      pool.run(() => 3),
      { code: 'POOL_QUEUE_FULL' },
    );
    await assert.rejects(
      pool.with({ priority: 9 }).run(() => 4),
      { code: 'POOL_QUEUE_FULL' },
    );
    gate.open();
    assert.deepEqual(await Promise.all([blocker, ...waiting]), [0, 1, 2]);
    assert.equal(await pool.run(() => 5), 5);
  });

  test(`${way.name}: async tasks run so many at a time in a worker as it may have`, async (t) => {
    const pool = openPool(t, { size: 1, concurrentTasksPerWorker: 3 }, way);
    const all = Promise.all(Array.from({ length: 12 }, () => pool.run(() => crowd(3))));
    const counts = await withDeadline(all, deadlineMs, 'three tasks at a time');
    assert.equal(Math.max(...counts), 3);
    const alone = openPool(t, { size: 1 }, way);
    const ones = await Promise.all(Array.from({ length: 6 }, () => alone.run(() => crowd())));
    assert.deepEqual(ones, [1, 1, 1, 1, 1, 1]);
  });
}

test('the time that a task waits does not count for its timeout', async (t) => {
  const pool = openPool(t, { size: 1 });
  const isInTime = async (timeoutMs: number): Promise<boolean> => {
    const blocker = pool.run(spinMs, 1.5 * timeoutMs);
    const late = pool.with({ timeoutMs }).run(() => 'in time');
    const [{ status }] = await Promise.allSettled([late, blocker]);
    return status === 'fulfilled';
  };
  // A longer limit where the machine has made a pause.
  assert.ok((await isInTime(200)) || (await isInTime(1_000)) || (await isInTime(5_000)));
});

test('with two workers a long task does not hold the tasks behind it', async (t) => {
  const pool = openPool(t, { size: 2 });
  await pool.warm();
  const gate = new Gate(t);
  const [open, mark] = [gate.file, gate.mark('long')];
  const work = (isLong: boolean): string => (isLong ? blockUntil(open, mark, 'long') : 'short');
  for (let round = 0; round < 100; round += 1) await pool.run(work, false);
  // All of these are expected to be short, and several wait in the ring behind the long one.
  const calls = Array.from({ length: 60 }, (_, index) => pool.run(work, index === 0));
  assert.equal((await Promise.all(calls.slice(1))).length, 59);
  await gate.reached('long'); // a worker that wakes late has it after all the rest
  gate.open();
  assert.equal(await calls[0], 'long');
});
