// A thread worker gets its first tasks with its start: it begins them though its parent's loop is blocked.
// Until it is ready they wait as those in the queue do.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { announcements } from '../../src/lib/index.js';
import { waitFor, withDeadline } from '../support/index.js';
import { openPool, type Way } from './calls/ways.js';

/** The one where a task that has not begun can be reclaimed. */
const way: Way = { name: 'thread over shm', worker: 'thread', channel: 'shm' };
const deadlineMs = 20_000;

const shared = (): Int32Array => new Int32Array(new SharedArrayBuffer(8));

/** Blocks this thread until the word is no longer 0. */
function blockUntilSet(words: Int32Array, at = 0): void {
  assert.notEqual(Atomics.wait(words, at, 0, deadlineMs), 'timed-out', 'no task has begun');
}

const mark = (words: Int32Array, at: number): string => {
  Atomics.store(words, at, 1);
  Atomics.notify(words, at);
  return `marked ${at}`;
};

/** A set-up that lets the first worker pass, and holds the others until word 1 is set. */
const holdOthers = (words: Int32Array) => () => {
  if (Atomics.add(words, 0, 1) > 0) Atomics.wait(words, 1, 0, 20_000);
};

/** A set-up that holds its worker until word 1 is set. */
const holdAll = (words: Int32Array) => () => void Atomics.wait(words, 1, 0, 20_000);

test('a first call is begun while the loop of the caller is blocked', async (t) => {
  const pool = openPool(t, { size: 1, concurrentTasksPerWorker: 2 }, way);
  const words = shared();
  const calls = [pool.run(mark, words, 0), pool.run(mark, words, 1)];
  blockUntilSet(words, 0);
  blockUntilSet(words, 1);
  assert.deepEqual(await Promise.all(calls), ['marked 0', 'marked 1']);
});

test('first calls are spread over the workers that start', async (t) => {
  const pool = openPool(t, { size: { min: 2, max: 2 }, concurrentTasksPerWorker: 2 }, way);
  const words = shared();
  const meet = (seen: Int32Array): void => {
    Atomics.add(seen, 0, 1);
    Atomics.notify(seen, 0);
    while (Atomics.load(seen, 0) < 2) Atomics.wait(seen, 0, 1);
    Atomics.store(seen, 1, 1);
    Atomics.notify(seen, 1);
  };
  const calls = [pool.run(meet, words), pool.run(meet, words)];
  blockUntilSet(words, 1);
  await Promise.all(calls);
});

test('it is begun after the set-up, and aborted while it runs', async (t) => {
  const words = shared();
  const setup = async (): Promise<void> => {
    await new Promise(setImmediate);
    Atomics.store(words, 1, 7);
  };
  const pool = openPool(t, { size: 1, setup, graceMs: 0 }, way);
  const aborting = new AbortController();
  const call = pool.with({ signal: aborting.signal }).run((seen: Int32Array): void => {
    Atomics.store(seen, 0, Atomics.load(seen, 1));
    Atomics.notify(seen, 0);
    Atomics.wait(seen, 0, 7);
  }, words);
  blockUntilSet(words);
  assert.equal(Atomics.load(words, 0), 7);
  aborting.abort();
  await assert.rejects(call, { code: 'ABORTED' });
});

test('until a worker is ready its tasks wait, and can be cancelled', async (t) => {
  const words = shared();
  const pool = openPool(t, { size: 1, setup: holdAll(words) }, way);
  const aborting = new AbortController();
  const ran: unknown[] = [];
  const onStart = (message: unknown): void => void ran.push(message);
  announcements.taskStart.subscribe(onStart);
  t.after(() => announcements.taskStart.unsubscribe(onStart));
  const queued: number[] = [];
  const onQueued = (message: unknown): void => {
    queued.push(Number(Reflect.get(Object(message), 'waitingTasks')));
  };
  announcements.taskQueued.subscribe(onQueued);
  t.after(() => announcements.taskQueued.unsubscribe(onQueued));
  const call = pool.with({ signal: aborting.signal }).run(() => 1);
  assert.deepEqual(queued, [1]);
  const { waitingTasks, runningTasks, workers, waited } = pool.stats();
  assert.deepEqual([waitingTasks, runningTasks, waited.count], [1, 0, 0]);
  assert.deepEqual(
    workers.map(({ tasksInFlight }) => tasksInFlight),
    [0],
  );
  aborting.abort();
  await assert.rejects(call, { code: 'ABORTED' });
  const others = [pool.run(() => 2), pool.run(() => 3)];
  const cancelled = Promise.allSettled(others);
  assert.equal(pool.cancelWaiting(), 2);
  assert.deepEqual(
    (await cancelled).map((each) => each.status === 'rejected' && each.reason.code),
    ['ABORTED', 'ABORTED'],
  );
  assert.equal(ran.length, 0);
  mark(words, 1);
  assert.equal(await pool.run(() => 4), 4);
  assert.deepEqual([ran.length, pool.stats().waited.count], [1, 1]);
});

test('another worker that is ready earlier takes them over', async (t) => {
  const words = shared();
  const pool = openPool(t, { size: 2, setup: holdOthers(words) }, way);
  const calls = [1, 2].map((value) => pool.run((n: number) => n, value));
  assert.equal(pool.stats().workers.length, 2);
  assert.deepEqual(await Promise.all(calls), [1, 2]);
  mark(words, 1);
});

test('a worker whose set-up throws loses none of them', async (t) => {
  const words = shared();
  const setup = (): void => {
    if (Atomics.add(words, 0, 1) === 0) throw new Error('not this one');
  };
  const pool = openPool(t, { size: 1, setup }, way);
  assert.equal(await pool.run(() => 5), 5);
  assert.equal(Atomics.load(words, 0), 2);
  const never = openPool(
    t,
    {
      size: 1,
      startRetryMs: 0,
      setup: () => {
        throw new Error('none of them');
      },
    },
    way,
  );
  await assert.rejects(
    never.run(() => 6),
    { code: 'WORKER_START_FAILED', message: /none of them/ },
  );
});

test('a worker that is to go while it starts leaves when its task is aborted, and others start', async (t) => {
  const pool = openPool(t, { size: 1 }, way);
  const aborting = new AbortController();
  const call = pool.with({ signal: aborting.signal }).run(() => 1);
  const recycled = pool.recycle();
  aborting.abort();
  await assert.rejects(call, { code: 'ABORTED' });
  assert.equal(
    await withDeadline(
      pool.run(() => 'later'),
      deadlineMs,
      'the next call',
    ),
    'later',
  );
  await withDeadline(recycled, deadlineMs, 'the recycling');
  const words = shared();
  const many = openPool(t, { size: { min: 3, max: 3 }, setup: holdAll(words) }, way);
  const calls = Promise.allSettled([1, 2, 3].map((value) => many.run((n: number) => n, value)));
  many.resize(1);
  assert.equal(many.cancelWaiting(), 3);
  mark(words, 1);
  await calls;
  await waitFor(() => many.stats().workers.length === 1);
  assert.equal(await many.run(() => 'one'), 'one');
});

test('a higher priority that comes later is first all the same', async (t) => {
  const words = shared();
  const pool = openPool(t, { size: 1, setup: holdAll(words) }, way);
  const order: string[] = [];
  const note = async (name: string, priority: number): Promise<void> => {
    order.push(await pool.with({ priority }).run((each: string) => each, name));
  };
  const calls = [note('low', 0), note('high', 1), note('lower', -1)];
  mark(words, 1);
  await Promise.all(calls);
  assert.deepEqual(order, ['high', 'low', 'lower']);
});

test('the first call is first though its worker is the last to start', async (t) => {
  const words = shared();
  const pool = openPool(t, { size: 2, setup: holdOthers(words) }, way);
  const order: number[] = [];
  const calls = Array.from({ length: 20 }, async (_, call) => {
    order.push(await pool.run((n: number) => n, call));
  });
  await Promise.all(calls);
  mark(words, 1);
  // The first two calls are offered to one worker each: the one that starts takes the other back.
  assert.ok(order.indexOf(0) <= 1 && order.indexOf(1) <= 1, String(order));
  assert.deepEqual(
    order.filter((each) => each > 1),
    order.filter((each) => each > 1).toSorted((a, b) => a - b),
  );
});

test('a starting worker holds no core that another pool could use', async (t) => {
  const words = shared();
  const waiting = openPool(t, { size: 1, setup: holdAll(words) }, way);
  const call = waiting.run(() => 1);
  assert.equal(waiting.stats().cores.used, 0);
  mark(words, 1);
  assert.equal(await call, 1);
});

test('a task that has begun unseen is not cancelled as waiting', async (t) => {
  const pool = openPool(t, { size: 1 }, way);
  const words = shared();
  const call = pool.run(mark, words, 0);
  blockUntilSet(words);
  assert.equal(pool.cancelWaiting(), 0);
  assert.equal(await call, 'marked 0');
  assert.equal(pool.stats().cores.used, 0);
});
