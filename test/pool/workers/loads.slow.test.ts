// Calls whose modules do not load in workers: the call is rejected, the workers of others go on or are replaced.

import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { type Pool, type PoolOptions, pmap } from '../../../src/public.js';
import { waitFor, withDeadline } from '../../support/index.js';
import { deadlineMs, Gate, openPool, processWays, type Way, ways } from '../calls/ways.js';
import { loadingVariable, loadVariable, one } from '../ending-module.js';
import { programFolder } from '../programs.js';

interface Poisoned {
  readonly pool: Pool;
  readonly gate: Gate;
}

/** A pool with a ready worker, in which the module does not load. */
async function poisonedPool(
  t: TestContext,
  load: string,
  way: Way,
  options: PoolOptions = {},
  isWarm = true,
): Promise<Poisoned> {
  const gate = new Gate(t);
  const env = { [loadVariable]: load, [loadingVariable]: gate.mark('loading') };
  const pool = openPool(t, { size: 1, graceMs: 10, env, ...options }, way);
  if (isWarm) await pool.warm();
  return { pool, gate };
}

/** Calls a CommonJS module, which is loaded without a turn of the loop. */
function requiringOne(t: TestContext): () => number {
  const folder = programFolder(t, {
    'required.cjs': `const how = process.env.${loadVariable};
if (how !== undefined) require('node:fs').writeFileSync(process.env.${loadingVariable}, '');
if (how === 'spins') for (;;);
if (how === 'exits') process.exit(7);
if (how === 'is killed') process.kill(process.pid, 'SIGKILL');
exports.one = () => 1;`,
  });
  const required = createRequire(import.meta.url)(join(folder, 'required.cjs'));
  return () => required.one();
}

const next = (pool: Pool): Promise<number> =>
  withDeadline(
    pool.run(() => 2),
    deadlineMs,
    'the next call',
  );

const loads = [
  ['spins', 'import'],
  ['awaits', 'import'],
  ['spins', 'require'],
] as const;

describe('loads that never end', { concurrency: 8 }, () => {
  for (const way of ways) {
    for (const [load, how] of loads) {
      for (const end of ['an abort', 'its time limit'] as const) {
        // Without claims all calls count as begun; threads have seconds to end a load.
        const isFull = way.channel === 'shm' && way.worker === 'process';
        if (!isFull && (how === 'require' || (end === 'an abort') !== (load === 'awaits')))
          continue;
        test(`${way.name}: the worker whose ${how} ${load} is replaced after ${end}`, async (t) => {
          const { pool, gate } = await poisonedPool(t, load, way);
          const call = how === 'import' ? () => one() : requiringOne(t);
          const abort = new AbortController();
          const limits = end === 'an abort' ? { signal: abort.signal } : { timeoutMs: 1000 };
          const poison = pool.with(limits).run(call);
          const code = end === 'an abort' ? 'ABORTED' : 'TASK_TIMED_OUT';
          const rejected = assert.rejects(poison, { code });
          if (end === 'an abort') await gate.reached('loading'); // else its time may be over before
          abort.abort();
          await rejected;
          assert.equal(await next(pool), 2);
          // One whose time was over before it loaded is ended later.
          await waitFor(() => pool.stats().exitedWorkers === 1);
          assert.equal(pool.stats().health.state, 'ok');
        });
      }
    }

    test(`${way.name}: a load for a call that was given up while its worker started ends`, async (t) => {
      const { pool } = await poisonedPool(t, 'awaits', way, {}, false);
      const abort = new AbortController();
      const poison = pool.with({ signal: abort.signal }).run(() => one());
      abort.abort();
      await assert.rejects(poison, { code: 'ABORTED' });
      assert.equal(await next(pool), 2);
    });

    test(`${way.name}: what waits beside a load that never ends runs elsewhere`, async (t) => {
      const { pool, gate } = await poisonedPool(t, 'awaits', way, { concurrentTasksPerWorker: 2 });
      const abort = new AbortController();
      const poison = pool.with({ signal: abort.signal, retry: 1 }).run(() => one());
      const rejected = assert.rejects(poison, { code: 'ABORTED' });
      await gate.reached('loading');
      const beside = pool.with({ retry: 1 }).run(() => 3);
      abort.abort();
      await rejected;
      assert.equal(await withDeadline(beside, deadlineMs, 'the call beside it'), 3);
    });
  }

  for (const way of ways.filter(({ channel }) => channel === 'shm')) {
    test(`${way.name}: a task that runs beside a load which never ends finishes`, async (t) => {
      const { pool, gate } = await poisonedPool(t, 'awaits', way, { concurrentTasksPerWorker: 2 });
      const file = gate.file;
      const innocent = pool.run(async (mark: string) => {
        writeFileSync(mark, '');
        while (!existsSync(file)) await new Promise((resolve) => setTimeout(resolve, 2));
        return 3;
      }, gate.mark('innocent'));
      await gate.reached('innocent');
      const abort = new AbortController();
      const poison = assert.rejects(
        pool.with({ signal: abort.signal }).run(() => one()),
        { code: 'ABORTED' },
      );
      await gate.reached('loading');
      abort.abort();
      await poison;
      assert.equal(await next(pool), 2);
      gate.open();
      assert.equal(await innocent, 3);
      await waitFor(() => pool.stats().exitedWorkers === 1);
    });

    test(`${way.name}: a task that never began behind one that blocks is no reason to end it`, async (t) => {
      const { pool, gate } = await poisonedPool(t, '', way, { concurrentTasksPerWorker: 2 });
      const file = gate.file;
      const innocent = pool.run((mark: string) => {
        writeFileSync(mark, '');
        while (!existsSync(file));
        return 3;
      }, gate.mark('innocent'));
      await gate.reached('innocent');
      await assert.rejects(
        pool.with({ signal: AbortSignal.timeout(20) }).run(() => 4),
        { code: 'ABORTED' },
      );
      // Longer than a worker may take to show that its loop turns.
      setTimeout(() => gate.open(), 2_500);
      assert.equal(await innocent, 3);
      assert.equal(await next(pool), 2);
      assert.equal(pool.stats().exitedWorkers, 0);
    });
  }
});

describe('loads that end their worker', { concurrency: 8 }, () => {
  for (const way of ways) {
    for (const [how, size, start] of [
      ['import', 1, 'cold'],
      ['require', 1, 'cold'],
      ['require', 2, 'cold'],
      ['import', 2, 'warm'],
      ['require', 1, 'warm'],
    ] as const) {
      // Without claims all calls count as begun.
      if (way.channel !== 'shm' && (how !== 'require' || start !== 'warm')) continue;
      test(`${way.name}: a call whose ${how} exits alone is lost, size ${size}, ${start}`, async (t) => {
        const isWarm = start === 'warm';
        const { pool } = await poisonedPool(t, 'exits', way, { size }, isWarm);
        const poison = pool.run(how === 'import' ? () => one() : requiringOne(t));
        const rejected = assert.rejects(poison, { code: 'WORKER_EXITED', exitCode: 7 });
        const others = Array.from({ length: 20 }, (_, value) => pool.run((each) => each, value));
        await withDeadline(rejected, deadlineMs, 'the call is rejected');
        const found = await withDeadline(Promise.all(others), deadlineMs, 'the others');
        assert.deepEqual(found, [...Array(20).keys()]);
        if (way.channel === 'shm') assert.equal(pool.stats().health.failedStarts, 0);
      });
    }
  }

  for (const way of ways.filter(({ channel }) => channel === 'shm')) {
    test(`${way.name}: the refusal names the module and the task`, async (t) => {
      const { pool } = await poisonedPool(t, 'exits', way);
      const call = requiringOne(t);
      await assert.rejects(pool.run(call), {
        message:
          /ended with exit code 7 while it loaded \S+required\.cjs for \S+.*must load there without ending it/,
      });
    });

    test(`${way.name}: a call with retry whose modules end their workers has its retries`, async (t) => {
      const { pool } = await poisonedPool(t, 'exits', way);
      const call = pool.with({ retry: 2 }).run(() => one());
      await assert.rejects(call, { code: 'WORKER_EXITED' });
      assert.equal(pool.stats().exitedWorkers, 3);
    });

    test(`${way.name}: a map whose modules end their workers is rejected`, async (t) => {
      const { pool } = await poisonedPool(t, 'exits', way, { size: 2 });
      const map = pmap([1, 2, 3], () => one(), { pool });
      await assert.rejects(withDeadline(map, deadlineMs, 'the map'), /WORKER_EXITED|ended with/);
      assert.equal(await next(pool), 2);
    });
  }

  for (const way of processWays.filter(({ channel }) => channel === 'shm')) {
    test('a load under which a worker is killed is tried once more', async (t) => {
      const { pool } = await poisonedPool(t, 'is killed', way);
      const others = Array.from({ length: 20 }, (_, value) => pool.run((each) => each, value));
      await assert.rejects(
        pool.run(() => one()),
        { code: 'WORKER_EXITED', signal: 'SIGKILL', message: /while it loaded/ },
      );
      assert.deepEqual(await Promise.all(others), [...Array(20).keys()]);
      assert.equal(pool.stats().exitedWorkers, 2);
    });
  }
});
