// Starts that fail: waiting tasks are kept while the cause may pass, and rejected at once when it is
// lasting.

import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { type TestContext, test } from 'node:test';
import type { Pool, PoolOptions } from '../../../src/public.js';
import { someOf, waitFor, warningsWith, withDeadline } from '../../support/index.js';
import { deadlineMs, Gate, openPool } from '../calls/ways.js';

/** Long enough that only a pool that does not wait for it ends within the deadline of a test. */
const endlessMs = 600_000;

/** Time for waves of starts of many workers on a busy machine. */
const manyStartsMs = 240_000;

const mayFail = { retry: 2 };

function call(pool: Pool, options = {}, longestMs = deadlineMs): Promise<number> {
  return withDeadline(
    pool.with(options).run((value: number) => value, 1),
    longestMs,
    'the call settles',
  );
}

function listen(t: TestContext, name: string): object[] {
  const messages: object[] = [];
  const onMessage = (message: unknown): void => void messages.push(Object(message));
  subscribe(name, onMessage);
  t.after(() => unsubscribe(name, onMessage));
  return messages;
}

/** A pool whose workers fail to start until the file `mended` exists. */
function brokenPool(t: TestContext, options: PoolOptions): { pool: Pool; mend: () => void } {
  const mended = new Gate(t).mark('mended');
  const setup = (): void => {
    if (!existsSync(mended)) throw new RangeError('no database');
  };
  const pool = openPool(t, { setup, ...options });
  return { pool, mend: () => writeFileSync(mended, '') };
}

for (const size of someOf([8, 1, 2], 2)) {
  test(`a pool of ${size} whose workers are all killed once at their start loses no task`, async (t) => {
    const pool = openPool(t, { size });
    const calls = Array.from({ length: 200 }, (_, index) =>
      pool.run((value: number) => value, index),
    );
    const killed = new Set<number>();
    await waitFor(() => {
      for (const { pid, state } of pool.stats().workers) {
        if (pid === undefined || killed.size >= size || killed.has(pid)) continue;
        if (state !== 'starting') break;
        process.kill(pid, 'SIGKILL');
        killed.add(pid);
      }
      return killed.size >= size || pool.stats().completedTasks > 0;
    });
    assert.ok(killed.size > 0);
    const found = await withDeadline(Promise.allSettled(calls), deadlineMs, 'all settle');
    assert.equal(found.filter(({ status }) => status === 'rejected').length, 0);
  });

  test(`a pool of ${size} waits out trouble that passes`, async (t) => {
    const { pool, mend } = brokenPool(t, { size, startRetryMs: endlessMs });
    const calls = Array.from({ length: 20 }, () => call(pool, {}, manyStartsMs));
    await waitFor(() => pool.stats().health.failedStarts >= 5, manyStartsMs);
    mend();
    assert.deepEqual(await Promise.all(calls), Array(20).fill(1));
  });
}

const lasting: Record<string, PoolOptions> = {
  'an unknown flag': { execArgv: ['--no-such-flag'] },
  'a module that is not there': { execArgv: ['--import', './no-such-module.mjs'] },
  'a module that throws': { execArgv: ['--import', 'data:text/javascript,throw new Error("x")'] },
  'a file of variables that is not there': { execArgv: ['--env-file=no-such.env'] },
  'a required module that is not there': { execArgv: ['-r', './no-such-module.js'] },
  'a limit of the heap that is too low': { maxHeapMb: 1 },
  'a heap that ends a part of a start later': { maxHeapMb: 4 },
  'a mistake in its set-up': { setup: () => Reflect.get(globalThis, 'noSuchFunction')() },
  'a set-up that exits': { setup: () => process.exit(3) },
};

for (const worker of ['process', 'thread'] as const) {
  for (const [what, options] of Object.entries(lasting)) {
    // A thread without a heap takes the process along, and variables of files are the whole process's.
    if (worker === 'thread' && /heap|variables/.test(what)) continue;
    test(`${worker}: ${what} rejects what waits, retry or not, long before the time is over`, async (t) => {
      const pool = openPool(t, { size: 2, worker, ...options, startRetryMs: endlessMs });
      const calls = [call(pool), call(pool, mayFail)];
      for (const each of calls) {
        await assert.rejects(each, {
          code: 'WORKER_START_FAILED',
          message: /the next start would fail as well/,
        });
      }
      assert.ok(pool.stats().startedWorkers <= 8, `${pool.stats().startedWorkers} starts`);
    });
  }
}

test('when the time is over what waits is rejected, with the last failure and the way out', async (t) => {
  const { pool } = brokenPool(t, { size: 1, startRetryMs: 200 });
  await assert.rejects(call(pool), {
    code: 'WORKER_START_FAILED',
    message:
      /no database; (?:1 start|\d+ starts in a row) failed in 0\.2 s: fix the cause, or raise startRetryMs/,
  });
});

test('a task with retry waits on when others are rejected, once more for each retry', async (t) => {
  const { pool, mend } = brokenPool(t, { size: 2, startRetryMs: 100 });
  const kept = call(pool, { retry: 1_000 });
  const last = call(pool, { retry: 1 });
  await assert.rejects(call(pool), { code: 'WORKER_START_FAILED' });
  assert.equal(pool.stats().waitingTasks, 2);
  await assert.rejects(last, { code: 'WORKER_START_FAILED' });
  mend();
  assert.equal(await kept, 1);
});

test('a task that waits longer than its maxQueueMs is rejected first, and has not run', async (t) => {
  const { pool, mend } = brokenPool(t, { size: 1 });
  const patient = call(pool, { maxQueueMs: endlessMs });
  await waitFor(() => pool.stats().health.state === 'degraded');
  await assert.rejects(call(pool, { maxQueueMs: 50 }), {
    code: 'TASK_WAITED_TOO_LONG',
    message: /longer than 50 ms, and has not run: no worker starts \(.*no database/,
  });
  mend();
  assert.equal(await patient, 1);
});

test('a task that waits too long for a first worker is rejected with that reason', async (t) => {
  const pool = openPool(t, {
    size: 1,
    setup: () => new Promise(() => setInterval(() => {}, 1_000)),
  });
  await assert.rejects(call(pool, { maxQueueMs: 50 }), {
    code: 'TASK_WAITED_TOO_LONG',
    message: /no worker is ready yet/,
  });
});

test('maxQueueMs ends the wait behind other work, and not the work', async (t) => {
  const pool = openPool(t, { size: 1 });
  const gate = new Gate(t);
  const [file, mark] = [gate.file, gate.mark('busy')];
  const { blockUntil } = await import('../tasks.js');
  await pool.warm(); // it begins at once
  const running = pool.with({ maxQueueMs: 20 }).run(() => blockUntil(file, mark, 1));
  await gate.reached('busy');
  await assert.rejects(call(pool, { maxQueueMs: 20 }), {
    code: 'TASK_WAITED_TOO_LONG',
    message: /all workers are at work/,
  });
  assert.equal(pool.stats().waitingTasks, 0);
  gate.open();
  assert.equal(await running, 1);
});

test('health and manycore:pool:degraded say that starts fail, while it lasts', async (t) => {
  const [degraded, recovered] = [
    listen(t, 'manycore:pool:degraded'),
    listen(t, 'manycore:pool:recovered'),
  ];
  const { pool, mend } = brokenPool(t, { size: 2 });
  const healthy = { state: 'ok', failedStarts: 0, degradedMs: 0, reason: undefined };
  assert.deepEqual(pool.stats().health, healthy);
  const waiting = call(pool);
  await waitFor(() => degraded.length >= 3);
  const { state, failedStarts, degradedMs, reason } = pool.stats().health;
  assert.equal(state, 'degraded');
  assert.ok(failedStarts >= 3 && degradedMs > 0);
  assert.match(reason ?? '', /no database/);
  const counts = degraded.map((message) => Reflect.get(message, 'failedStarts'));
  assert.deepEqual(counts.slice(0, 3), [1, 2, 3]);
  assert.equal(Reflect.get(degraded[0] ?? {}, 'waitingTasks'), 1);
  assert.deepEqual(recovered, []);
  mend();
  await waiting;
  assert.deepEqual(pool.stats().health, healthy);
  assert.equal(recovered.length, 1);
});

test('a pool without calls recovers when its workers stay', async (t) => {
  const { pool, mend } = brokenPool(t, { size: 1 });
  const warming = pool.warm();
  await waitFor(() => pool.stats().health.state === 'degraded');
  mend();
  await warming;
  await waitFor(() => pool.stats().health.state === 'ok');
});

test('while a worker works nothing is rejected, though no other starts', async (t) => {
  const mark = new Gate(t).mark('first');
  writeFileSync(mark, '');
  const setup = (): void => {
    if (!existsSync(mark)) throw new ReferenceError('a mistake');
  };
  const pool = openPool(t, { size: { min: 0, max: 2 }, setup, startRetryMs: 0 });
  await call(pool);
  rmSync(mark);
  const calls = Array.from({ length: 500 }, (_, index) =>
    pool.run(async (value: number) => {
      await new Promise((resolve) => setTimeout(resolve, 1));
      return value;
    }, index),
  );
  assert.deepEqual(await withDeadline(Promise.all(calls), deadlineMs, 'all'), [
    ...Array(500).keys(),
  ]);
  assert.ok(pool.stats().startedWorkers < 40, `${pool.stats().startedWorkers} starts`);
});

const noWorker = /setup failed: no database; starts are repeated for up to 30 s \(startRetryMs\)/;

test('one warning for a pool whose starts fail, none when something subscribes to the channel', async (t) => {
  const fail = async (): Promise<void> => {
    const { pool, mend } = brokenPool(t, { size: 2 });
    const waiting = call(pool);
    await waitFor(() => pool.stats().health.failedStarts >= 3);
    mend();
    await waiting;
  };
  const messages = await warningsWith(t, 'DEGRADED_POOL', fail);
  assert.equal(messages.length, 1);
  assert.match(messages[0] ?? '', noWorker);
  listen(t, 'manycore:pool:degraded');
  assert.deepEqual(await warningsWith(t, 'DEGRADED_POOL', fail), []);
});

test('no warning where what waits is rejected at once, one where other workers work', async (t) => {
  const lasts = await warningsWith(t, 'DEGRADED_POOL', () =>
    assert.rejects(call(openPool(t, { size: 1, execArgv: ['--no-such-flag'] }))),
  );
  assert.deepEqual(lasts, []);
  const isFirst = (place: number): string[] => (place === 0 ? [] : ['--no-such-flag']);
  const pool = openPool(t, { size: { min: 0, max: 2 }, execArgv: isFirst });
  const works = await warningsWith(t, 'DEGRADED_POOL', async () => {
    await call(pool);
    await assert.rejects(pool.warm());
  });
  assert.match(works.join(), /works with its other workers/);
});

test('a single start that failed is counted in the singular', async (t) => {
  const { pool } = brokenPool(t, { size: 1, startRetryMs: 0 });
  await assert.rejects(call(pool), { message: /; 1 start failed in 0 s: fix the cause/ });
});
