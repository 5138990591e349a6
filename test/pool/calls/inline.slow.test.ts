// A pool that a task got, because it captured it or as an argument: its worker is one core, and that core
// is at work on the task, so what the task gives to the pool runs right there.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Pool, run } from '../../../src/public.js';
import { runProgram } from '../../faults/child.js';
import { openPool, ways } from './ways.js';

const double = (value: number): number => value * 2;

for (const way of ways) {
  test(`${way.name}: a captured pool runs in the task what the task gives to it`, async (t) => {
    const pool = openPool(t, { size: 2 }, way);
    assert.equal(await pool.run(() => pool.run((value: number) => value * 2, 21)), 42);
    const pids = await pool.run(async () => [
      process.pid,
      await pool.with({ timeoutMs: 1000 }).run(() => process.pid),
      await run.with({ pool })(() => process.pid),
    ]);
    assert.deepEqual(pids, [pids[0], pids[0], pids[0]]);
    const { startedWorkers } = pool.stats();
    assert.ok(startedWorkers <= 2);
  });

  test(`${way.name}: a pool as an argument runs in the task what the task gives to it`, async (t) => {
    const [pool, other] = [openPool(t, { size: 1 }, way), openPool(t, { size: 1 }, way)];
    const sum = await pool.run(async (given: Pool) => {
      let total = 0;
      const items = await given.run(function* () {
        yield* [1, 2, 3];
      });
      for await (const item of items) total += item;
      return total;
    }, other);
    assert.equal(sum, 6);
    assert.equal(other.stats().startedWorkers, 0);
  });
}

test('stats of a pool in a task count the calls that it ran there', async (t) => {
  const pool = openPool(t, { size: 1 });
  const [stats, codes] = await pool.run(async () => {
    await pool.warm();
    await pool.run(() => 1);
    const failed = pool.run(() => Promise.reject(new RangeError('inline')));
    const aborted = pool.with({ signal: AbortSignal.abort() }).run(() => 2);
    const wrong = pool.run(Reflect.get({}, 'none'));
    const seen: unknown[] = [];
    for (const call of [failed, aborted, wrong]) {
      await call.catch((error) => seen.push(error.code ?? error.name));
    }
    return [pool.stats(), seen];
  });
  assert.deepEqual(codes, ['RangeError', 'ABORTED', 'TASK_NOT_FUNCTION']);
  assert.deepEqual(stats.workers, []);
  const { startedWorkers, runningTasks, waitingTasks, completedTasks, failedTasks } = stats;
  assert.deepEqual(
    { startedWorkers, runningTasks, waitingTasks, completedTasks, failedTasks },
    { startedWorkers: 0, runningTasks: 0, waitingTasks: 0, completedTasks: 1, failedTasks: 1 },
  );
});

test('a task that closes its copy of a pool closes nothing else', async (t) => {
  const pool = openPool(t, { size: 1 });
  const codes = await pool.run(async () => {
    const after = (): Promise<unknown> => pool.run(() => 1).catch((error) => error.code);
    await pool.close();
    await pool.close();
    const closed = await after();
    await pool.destroy();
    return [closed, await after(), await pool.warm().catch((error) => error.code)];
  });
  assert.deepEqual(codes, ['POOL_CLOSED', 'POOL_CLOSED', 'POOL_CLOSED']);
  assert.equal(await pool.run(() => pool.run(double, 4)), 8);
});

for (const [what, folder] of [
  ['modules', '../../../src/public.js'],
  ['bundle', '../../../bundle/index.js'],
] as const) {
  test(`a captured pool works in the default pool of the package as ${what}`, async (t) => {
    const library = new URL(folder, import.meta.url).href;
    const { stdout, stderr, status } = await runProgram(
      t,
      `import { Pool, run } from ${JSON.stringify(library)};
       const pool = new Pool({ size: 2 });
       console.log(await run(() => pool.run((value) => value * 2, 21)), pool.stats().startedWorkers);`,
    );
    assert.equal(status, 0, stderr);
    assert.equal(stdout, '42 0\n');
  });
}
