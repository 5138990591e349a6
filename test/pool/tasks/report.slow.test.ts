// Reports of a task to its caller while it runs.

import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { test } from 'node:test';
import { Pool, pmap, report, run } from '../../../src/public.js';
import { InlineReports } from '../../../src/worker/inside/report.js';
import { waitFor, withDeadline } from '../../support/index.js';
import { deadlineMs, Gate, openPool, ways } from '../calls/ways.js';

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
    const pool = openPool(t, { size: 1, concurrentTasksPerWorker: 3 }, way);
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

type Nested = (got: unknown[], own: Pool | undefined) => unknown;

/** Tasks that make a call of their own: what its listener got is their result. `after` goes to their own caller. */
const nested: Record<string, Nested> = {
  'a call': (got) => run.with({ onReport: (value) => got.push(value) })(() => report('inner')),
  'a call without a listener': () => run(() => report('nobody listens')),
  'a call of another pool': (got, own) =>
    own?.with({ onReport: (value) => got.push(value) }).run(() => report('inner')),
  'a call of another pool without a listener': (_, own) => own?.run(() => report('nobody listens')),
  'a call in a call': (got) =>
    run.with({ onReport: (value) => got.push(value) })(async () => {
      await report('inner');
      await run.with({ onReport: (value) => report(['for the inner', value]) })(() => report(1));
      await run(() => report('nobody listens'));
      await report('again');
    }),
  'a listener that reports': (got) =>
    run.with({
      onReport: async (value) => {
        got.push(value);
        await report(['passed on', value]);
      },
    })(() => report('inner')),
  'a listener of another pool that reports': (got, own) =>
    own
      ?.with({
        onReport: async (value) => {
          got.push(value);
          await report(['passed on', value]);
        },
      })
      .run(() => report('inner')),
  'a stream': async (got) => {
    const stream = await run.with({ onReport: (value) => got.push(value) })(async function* () {
      await report('begun');
      yield 1;
      await report('between');
      yield 2;
      await report('ended');
    });
    for await (const item of stream) assert.ok(item); // it may run ahead of them
  },
  'a stream without a listener': async (got) => {
    const stream = await run(async function* () {
      await report('nobody listens');
      yield 1;
      await report('nobody listens');
    });
    for await (const item of stream) got.push(item);
  },
  'calls side by side': async (got) => {
    const calls = [1, 2, 3].map(async (each) => {
      const own: unknown[] = [];
      await run.with({ onReport: (value) => own.push(value) })(async () => {
        await report(each);
        await report(-each);
      });
      return own;
    });
    got.push(...(await Promise.all(calls)));
  },
  'a map': (got) =>
    pmap([1, 2], async (item) => {
      await report('nobody listens');
      return item;
    }).then((items) => got.push(...items)),
};

/** Reports that listeners of the tasks' own calls get, the same as in a program. */
const expected: Record<string, unknown[]> = {
  'a call': ['inner'],
  'a call of another pool': ['inner'],
  'a call in a call': ['inner', ['for the inner', 1], 'again'],
  'a listener that reports': ['inner'],
  'a listener of another pool that reports': ['inner'],
  'a stream': ['begun', 'between', 'ended'],
  'a stream without a listener': [1],
  'calls side by side': [
    [1, -1],
    [2, -2],
    [3, -3],
  ],
  'a map': [1, 2],
};

/** Reports that come to the listener around, but for the first and the last. */
const passed = (name: string): unknown[] =>
  name.includes('that reports') ? [['passed on', 'inner']] : [];

const taskOf = (name: string, body: Nested) => async (): Promise<unknown[]> => {
  const got: unknown[] = [];
  await using own = name.includes('another pool') ? new Pool({ size: 1 }) : undefined;
  await report('before');
  await body(got, own);
  await report('after');
  return got;
};

const places = ['workers', 'threads', 'workers with two tasks', 'a task in a task'] as const;

for (const place of places) {
  test(`reports of calls inside tasks go to their own listeners: in ${place}`, async (t) => {
    const pool = openPool(t, {
      size: 1,
      worker: place === 'threads' ? 'thread' : 'process',
      concurrentTasksPerWorker: place === 'workers with two tasks' ? 2 : 1,
    });
    for (const [name, body] of Object.entries(nested)) {
      // Pools in tasks start workers, which takes time.
      const isTried =
        place === (name.includes('that reports') ? 'workers with two tasks' : 'workers');
      if (name.includes('another pool') && !isTried) continue;
      const task = taskOf(name, body);
      const outer: unknown[] = [];
      const call = run.with({ pool, onReport: (value) => outer.push(value) });
      const got = await (place === 'a task in a task'
        ? call(async (inner) => run.with({ onReport: report })(inner), task)
        : call(task));
      assert.deepEqual(got, expected[name] ?? [], name);
      assert.deepEqual(outer, ['before', ...passed(name), 'after'], name);
      if (place !== 'workers' || name.includes('another pool')) continue;
      assert.deepEqual(await pool.run(task), got, `${name}, without a listener around`);
    }
  });
}

test('a listener runs in the context of its call', async (t) => {
  const pool = openPool(t, { size: 1 });
  const storage = new AsyncLocalStorage<string>();
  const seen: unknown[] = [];
  const call = pool.with({ onReport: () => seen.push(storage.getStore()) });
  await storage.run('first', () => call.run(() => report(1)));
  await storage.run('second', () => call.run(() => report(1)));
  assert.deepEqual(seen, ['first', 'second']);
});

test("a report of an inline call that was answered is nobody's", async () => {
  const seen: unknown[] = [];
  const reports = new InlineReports((value) => seen.push(value));
  await reports.run(() => report(1));
  reports.end();
  await reports.run(() => report(2));
  assert.deepEqual(seen, [1]);
});
