// What a task says to its caller while it runs.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { report, run } from '../../src/index.js';
import { waitFor, withDeadline } from '../support/index.js';
import { deadlineMs, Gate, openPool, ways } from './ways.js';

for (const way of ways) {
  test(`${way.name}: reports reach the caller in order, before the result`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const seen: number[] = [];
    const result = await pool
      .with({ onReport: (value: number) => seen.push(value) })
      .run(async () => {
        for (let at = 0; at < 100; at += 1) await report(at);
        return 'done';
      });
    assert.equal(result, 'done');
    assert.deepEqual(seen, [...Array(100).keys()]);
  });

  test(`${way.name}: a task that never awaits reports as well`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const seen: unknown[] = [];
    await pool.with({ onReport: (value: unknown) => seen.push(value) }).run(() => {
      for (let at = 0; at < 3000; at += 1) void report({ at, text: 'x'.repeat(100) });
    });
    await waitFor(() => seen.length === 3000);
    assert.deepEqual(seen.at(-1), { at: 2999, text: 'x'.repeat(100) });
  });

  test(`${way.name}: a task that awaits its reports is never ahead of its caller`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const gate = new Gate(t);
    const mark = gate.mark('second');
    let release = (): void => {};
    const seen: number[] = [];
    const onReport = (value: number): Promise<void> => {
      seen.push(value);
      return new Promise((resolve) => {
        release = resolve;
      });
    };
    const call = pool.with({ onReport }).run(async () => {
      const { writeFileSync } = await import('node:fs');
      await report(1);
      writeFileSync(mark, '');
      await report(2);
    });
    await waitFor(() => seen.length === 1);
    await pool.stats();
    assert.deepEqual([seen, gate.marks], [[1], []]);
    release();
    await gate.reached('second');
    await waitFor(() => seen.length === 2);
    release();
    await call;
  });

  test(`${way.name}: reports of concurrent tasks go to their own callers`, async (t) => {
    const pool = openPool(t, { size: 1, concurrentTasksPerHost: 3 }, way);
    const seen: number[][] = [[], [], []];
    await Promise.all(
      seen.map((list, at) =>
        pool.with({ onReport: (value: number) => list.push(value) }).run(async (from: number) => {
          for (let step = 0; step < 20; step += 1) await report(from * 100 + step);
        }, at),
      ),
    );
    for (const [at, list] of seen.entries()) {
      assert.deepEqual(
        list,
        Array.from({ length: 20 }, (_, step) => at * 100 + step),
      );
    }
  });

  test(`${way.name}: what onReport throws ends the call, and the pool goes on`, async (t) => {
    const pool = openPool(t, { size: 1, graceMs: 50 }, way);
    for (const onReport of [
      () => {
        throw new RangeError('enough');
      },
      () => Promise.reject(new RangeError('enough')),
    ]) {
      const call = pool.with({ onReport }).run(async () => {
        await report(1);
        await new Promise(() => {});
      });
      await assert.rejects(withDeadline(call, deadlineMs, 'an answer'), RangeError);
    }
    assert.equal(await pool.run(() => 1), 1);
  });

  test(`${way.name}: without a listener, and with what cannot travel, a task goes on`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const call = pool.run(async () => {
      await report('nobody listens');
      return report(new WeakMap()).then(
        () => 'sent',
        (error: unknown) => Reflect.get(Object(error), 'code'),
      );
    });
    assert.equal(await withDeadline(call, deadlineMs, 'an answer'), 'TRANSFER_UNSUPPORTED');
  });
}

test('an inline call reports, and report() outside of a task does nothing', async (t) => {
  const pool = openPool(t, { size: 1, maxWaitingTasks: 0 });
  const seen: number[] = [];
  const onReport = (value: number): number => seen.push(value);
  await run.with({ pool, whenBusy: 'inline', onReport })(async () => {
    await report(1);
    await report(2);
  });
  await report(3);
  assert.deepEqual(seen, [1, 2]);
});
