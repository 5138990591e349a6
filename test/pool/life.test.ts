import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Pool } from '../../src/public.js';
import { library, runProgram } from '../faults/child.js';
import { isRunning, waitFor, withDeadline } from '../support/index.js';
import { deadlineMs, Gate, openPool, ways } from './calls/ways.js';
import { blockUntil } from './tasks.js';

for (const way of ways) {
  test(`${way.name}: close() lets everything finish that was called before, and twice is fine`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const calls = Array.from({ length: 50 }, (_, index) =>
      pool.run((value: number) => value, index),
    );
    const [first, second] = [pool.close(), pool.close()];
    await assert.rejects(
      pool.run(() => 1),
      { code: 'POOL_CLOSED' },
    );
    assert.deepEqual(await Promise.all(calls), [...Array(50).keys()]);
    await withDeadline(Promise.all([first, second, pool.close()]), deadlineMs, 'close');
    assert.deepEqual(pool.stats().workers, []);
    await assert.rejects(pool.warm(), { code: 'POOL_CLOSED' });
  });

  test(`${way.name}: destroy() during work rejects each call with POOL_CLOSED and ends the workers`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const gate = new Gate(t);
    const [open, mark] = [gate.file, gate.mark('busy')];
    const running = pool.run(() => blockUntil(open, mark, 1));
    const waiting = [pool.run(() => 2), pool.run(() => 3)];
    await gate.reached('busy');
    const pid = pool.stats().workers[0]?.pid ?? 0;
    const rejections = [running, ...waiting].map((call) =>
      assert.rejects(call, { code: 'POOL_CLOSED', message: /pool was destroyed/ }),
    );
    await withDeadline(Promise.all([pool.destroy(), pool.destroy()]), deadlineMs, 'destroy');
    await Promise.all(rejections);
    await assert.rejects(
      pool.run(() => 4),
      { code: 'POOL_CLOSED' },
    );
    if (way.worker === 'process') assert.equal(isRunning(pid), false);
    await withDeadline(pool.close(), deadlineMs, 'close after destroy');
  });

  test(`${way.name}: destroy() ends a close() that waits for an endless task`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const gate = new Gate(t);
    const [open, mark] = [gate.file, gate.mark('busy')];
    const running = assert.rejects(
      pool.run(() => blockUntil(open, mark, 1)),
      { code: 'POOL_CLOSED' },
    );
    await gate.reached('busy');
    const closing = pool.close();
    await withDeadline(pool.destroy(), deadlineMs, 'destroy');
    await running;
    await withDeadline(closing, deadlineMs, 'close');
  });

  test(`${way.name}: a pool that is closed while its workers start leaves none behind`, async (t) => {
    // A thread that is killed while it loads leaves files open: on a loaded machine it needs long.
    const pool = openPool(t, { size: 2, graceMs: deadlineMs }, way);
    const warming = assert.rejects(pool.warm(), { code: 'POOL_CLOSED' });
    await withDeadline(pool.close(), deadlineMs, 'close');
    await warming;
    assert.deepEqual(pool.stats().workers, []);
  });
}

test('a pool that did nothing closes', async () => {
  const pool = new Pool({ size: 1 });
  await withDeadline(pool.close(), deadlineMs, 'close');
  assert.equal(pool.stats().startedWorkers, 0);
});

test('a pool closes at the end of its block', async () => {
  let seen: Pool;
  {
    await using pool = new Pool({ size: 1 });
    seen = pool;
    assert.equal(await pool.run(() => 1), 1);
  }
  await assert.rejects(
    seen.run(() => 2),
    { code: 'POOL_CLOSED' },
  );
  assert.deepEqual(seen.stats().workers, []);
});

test('close() waits for a stream that is still read', async (t) => {
  const pool = openPool(t, { size: 1 });
  const stream = await pool.run(function* () {
    for (let value = 0; value < 100; value += 1) yield value;
  });
  const closing = pool.close();
  let count = 0;
  for await (const _ of stream) count += 1;
  assert.equal(count, 100);
  await withDeadline(closing, deadlineMs, 'close');
});

test('two pools share the cores: the second works with one while the first holds all', async (t) => {
  const [first, second] = [openPool(t, {}), openPool(t, {})];
  const cores = first.stats().cores.count;
  const gate = new Gate(t);
  const { file } = gate;
  const work = (mark: string): number => blockUntil(file, mark, 1);
  const marks = (pool: string) =>
    Array.from({ length: cores }, (_, at) => gate.mark(`${pool}${at}`));
  const calls = marks('first').map((mark) => first.run(work, mark));
  await waitFor(() => gate.marks.length === cores);
  calls.push(...marks('second').map((mark) => second.run(work, mark)));
  await waitFor(() => gate.marks.length === cores + 1);
  await second.warm();
  assert.equal(first.stats().cores.used, cores + 1);
  assert.equal(second.stats().runningTasks, 1);
  assert.equal(second.stats().waitingTasks, cores - 1);
  gate.open();
  await withDeadline(Promise.all(calls), deadlineMs, 'all tasks');
  assert.equal(second.stats().cores.used, 0);
});

for (const way of ways) {
  test(`${way.name}: a pool that did its work has no timers and keeps no program`, async (t) => {
    const text = `
      import { Pool } from ${JSON.stringify(library)};
      const pool = new Pool({ size: 2, worker: '${way.worker}', channel: '${way.channel}' });
      const short = (value) => value;
      for (let round = 0; round < 3; round += 1) {
        await Promise.all(Array.from({ length: 200 }, (_, value) => pool.run(short, value)));
      }
      const abort = new AbortController();
      await pool.with({ timeoutMs: 60_000, signal: abort.signal }).run(short, 1);
      const stream = await pool.run(function* () { yield* [1, 2, 3]; });
      for await (const item of stream) if (item === 2) break;
      const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout');
      const isIdle = () => pool.stats().runningTasks === 0 && timers().length === 0;
      // Work ahead is watched for some ms after it was done.
      while (!isIdle()) await new Promise((resolve) => setImmediate(resolve));
      console.log(pool.stats().workers.length > 0, pool.stats().cores.used);`;
    const { status, stdout, stderr } = await runProgram(t, text);
    assert.deepEqual([status, stdout.trim()], [0, 'true 0'], stderr);
  });
}
