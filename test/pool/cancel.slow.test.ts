import assert from 'node:assert/strict';
import { channel, subscribe } from 'node:diagnostics_channel';
import { getEventListeners } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { type RunOptions, run, taskSignal } from '../../src/public.js';
import { waitFor, withDeadline } from '../support/index.js';
import { deadlineMs, Gate, openPool, ways } from './calls/ways.js';
import { blockUntil } from './tasks.js';

for (const way of ways) {
  test(`${way.name}: a signal that is aborted before the call starts nothing`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const reason = new Error('not today');
    const call = pool.with({ signal: AbortSignal.abort(reason) }).run(() => 1);
    await assert.rejects(call, { code: 'ABORTED', cause: reason });
    assert.equal(pool.stats().startedWorkers, 0);
  });

  test(`${way.name}: a waiting task that is aborted never runs`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const gate = new Gate(t);
    const [open, mark, never] = [gate.file, gate.mark('blocker'), gate.mark('never')];
    const blocker = pool.run(() => blockUntil(open, mark, 1));
    await gate.reached('blocker');
    const abort = new AbortController();
    const waiting = pool.with({ signal: abort.signal }).run(() => writeFileSync(never, ''));
    const behind = pool.run(() => 2);
    abort.abort();
    await assert.rejects(waiting, { code: 'ABORTED' });
    assert.equal(pool.stats().waitingTasks, 1);
    gate.open();
    assert.deepEqual(await Promise.all([blocker, behind]), [1, 2]);
    assert.deepEqual(gate.marks, ['blocker']);
  });

  test(`${way.name}: an async task reacts to the abort, ends by itself, and its worker lives on`, async (t) => {
    const pool = openPool(t, { size: 1, graceMs: 60_000 }, way);
    const gate = new Gate(t);
    const [running, heard] = [gate.mark('running'), gate.mark('heard')];
    const abort = new AbortController();
    const call = pool.with({ signal: abort.signal }).run(async () => {
      const signal = taskSignal();
      writeFileSync(running, '');
      await new Promise<void>((resolve) => {
        signal?.addEventListener('abort', () => resolve());
      });
      writeFileSync(heard, '');
    });
    await gate.reached('running');
    abort.abort();
    await assert.rejects(call, { code: 'ABORTED' });
    await gate.reached('heard');
    assert.equal(await pool.run(() => 'next'), 'next');
    const { startedWorkers, exitedWorkers } = pool.stats();
    assert.deepEqual([startedWorkers, exitedWorkers], [1, 0]);
  });

  test(`${way.name}: an endless loop is ended after the grace time, its neighbours run elsewhere`, async (t) => {
    const pool = openPool(t, { size: 1, graceMs: 50 }, way);
    const gate = new Gate(t);
    const [open, mark] = [gate.file, gate.mark('loop')];
    const work = (value: number): number => (value < 0 ? blockUntil(open, mark, value) : value * 2);
    for (let round = 0; round < 50; round += 1) await pool.run(work, round);
    const abort = new AbortController();
    const endless = pool.with({ signal: abort.signal }).run(work, -1);
    const neighbours = Array.from({ length: 30 }, (_, value) => pool.run(work, value));
    await gate.reached('loop');
    abort.abort();
    await assert.rejects(endless, { code: 'ABORTED' });
    assert.deepEqual(
      await withDeadline(Promise.all(neighbours), deadlineMs, 'neighbours'),
      Array.from({ length: 30 }, (_, value) => value * 2),
    );
    assert.equal(pool.stats().exitedWorkers, 1);
  });

  test(`${way.name}: a task that runs too long rejects with TASK_TIMED_OUT and is ended`, async (t) => {
    const pool = openPool(t, { size: 1, graceMs: 50 }, way);
    const gate = new Gate(t);
    const [open, mark] = [gate.file, gate.mark('loop')];
    const endless = pool.with({ timeoutMs: 100 }).run(() => blockUntil(open, mark, 1));
    await assert.rejects(endless, { code: 'TASK_TIMED_OUT' });
    assert.equal(
      await withDeadline(
        pool.run(() => 'next'),
        deadlineMs,
        'a new worker',
      ),
      'next',
    );
  });

  test(`${way.name}: an answer that came while the loop of the caller was blocked is in time`, async (t) => {
    const pool = openPool(t, { size: 1, graceMs: 50 }, way);
    await pool.warm();
    const gate = new Gate(t);
    const marks = ['running', 'answered', 'answered again'].map((name) => gate.mark(name));
    const [running = '', answered = '', again = ''] = marks;
    const abort = new AbortController();
    const aborted = pool.with({ signal: abort.signal }).run(async () => {
      const signal = taskSignal();
      writeFileSync(running, '');
      await new Promise((resolve) => signal?.addEventListener('abort', resolve));
      setTimeout(() => writeFileSync(answered, ''), 5); // after the answer
    });
    const rejected = assert.rejects(aborted, { code: 'ABORTED' });
    await gate.reached('running');
    abort.abort();
    await new Promise((resolve) => setImmediate(resolve)); // the abort is sent
    blockUntilThere(answered, 100);
    await rejected;
    const timed = pool.with({ timeoutMs: 50 }).run(() => {
      setTimeout(() => writeFileSync(again, ''), 5);
      return 'in time';
    });
    await new Promise((resolve) => setImmediate(resolve));
    blockUntilThere(again, 100);
    assert.equal(await timed, 'in time');
    assert.equal(pool.stats().exitedWorkers, 0);
  });

  test(`${way.name}: an abort after the answer changes nothing`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const abort = new AbortController();
    assert.equal(await pool.with({ signal: abort.signal }).run(() => 1), 1);
    abort.abort();
    assert.equal(await pool.run(() => 2), 2);
    assert.equal(pool.stats().exitedWorkers, 0);
  });

  test(`${way.name}: a task that may be repeated runs again when its worker ends under it`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const gate = new Gate(t);
    const mark = gate.mark('first');
    const result = await pool.with({ retry: 1 }).run(() => {
      if (existsSync(mark)) return 'second';
      writeFileSync(mark, '');
      return process.exit(3);
    });
    assert.equal(result, 'second');
  });

  test(`${way.name}: a task runs no more often than it may be repeated`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const gate = new Gate(t);
    const { folder } = gate;
    const call = pool.with({ retry: 2 }).run(() => {
      writeFileSync(`${folder}/mark-${process.hrtime.bigint()}`, '');
      process.exit(3);
    });
    const expected = { code: 'WORKER_EXITED', exitCode: 3, message: /its 2 earlier runs/ };
    await assert.rejects(call, expected);
    assert.equal(gate.marks.length, 3);
  });
}

/** Blocks this thread until `file` is there, for at least so long. */
function blockUntilThere(file: string, leastMs: number): void {
  const word = new Int32Array(new SharedArrayBuffer(4));
  const endMs = performance.now() + deadlineMs;
  Atomics.wait(word, 0, 0, leastMs);
  while (!existsSync(file) && performance.now() < endMs) Atomics.wait(word, 0, 0, 1);
}

test('an inline call does not begin after its abort, and rejects at an abort and when its time is over', async (t) => {
  const pool = openPool(t, { size: 1 });
  const gate = new Gate(t);
  const [open, mark] = [gate.file, gate.mark('busy')];
  const blocker = pool.run(() => blockUntil(open, mark, 1));
  await gate.reached('busy');
  const never = (): Promise<never> => new Promise(() => {});
  const abort = new AbortController();
  const call = pool.with({ whenBusy: 'inline', signal: abort.signal }).run(never);
  abort.abort(new Error('not today'));
  await assert.rejects(call, { code: 'ABORTED', message: /not today/ });
  await assert.rejects(pool.with({ whenBusy: 'inline', timeoutMs: 20 }).run(never), {
    code: 'TASK_TIMED_OUT',
    message: /never ran longer than 20 ms/,
  });
  const { signal } = new AbortController();
  const plenty = pool.with({ whenBusy: 'inline', timeoutMs: 60_000, signal });
  assert.equal(await plenty.run(() => 2), 2);
  gate.open();
  assert.equal(await blocker, 1);
});

test('inside a task, calls honour their signal and their time', async (t) => {
  const pool = openPool(t, { size: 1 });
  const seen = await pool.run(async () => {
    let begun = 0;
    const never = (): Promise<never> => {
      begun += 1;
      return new Promise(() => {});
    };
    const codeOf = (error: { code: string }): string => error.code;
    const early = await run.with({ signal: AbortSignal.abort() })(never).catch(codeOf);
    const abort = new AbortController();
    setImmediate(() => abort.abort());
    const during = await run.with({ signal: abort.signal })(never).catch(codeOf);
    const late = await run.with({ timeoutMs: 20 })(never).catch(codeOf);
    return [early, during, late, begun];
  });
  assert.deepEqual(seen, ['ABORTED', 'ABORTED', 'TASK_TIMED_OUT', 2]);
});

test('a stream of an inline call ends at its abort and when its time is over', async (t) => {
  const pool = openPool(t, { size: 1 });
  const seen = await pool.run(async () => {
    const ended: string[] = [];
    async function* stall(name: string): AsyncGenerator<number> {
      try {
        for (let value = 0; ; value += 1) {
          yield value;
          if (value === 1) await new Promise((resolve) => setTimeout(resolve, 100));
        }
      } finally {
        ended.push(name);
      }
    }
    const drain = async (options: RunOptions, name: string): Promise<unknown[]> => {
      const items: unknown[] = [];
      try {
        for await (const item of await run.with(options)(stall, name)) {
          items.push(item);
          if (item === 5) break;
        }
      } catch (error) {
        items.push((error as { code: string }).code);
      }
      return items;
    };
    const abort = new AbortController();
    setImmediate(() => abort.abort());
    const aborted = await drain({ signal: abort.signal }, 'aborted');
    const late = await drain({ timeoutMs: 30 }, 'late');
    const left = await drain({ timeoutMs: 60_000 }, 'left');
    while (ended.length < 3) await new Promise((resolve) => setImmediate(resolve));
    return [aborted, late, left, ended.sort()];
  });
  assert.deepEqual(seen, [
    [0, 1, 'ABORTED'],
    [0, 1, 'TASK_TIMED_OUT'],
    [0, 1, 2, 3, 4, 5],
    ['aborted', 'late', 'left'],
  ]);
});

test('a task in its grace time keeps its worker: the next task runs elsewhere', async (t) => {
  const pool = openPool(t, { size: { min: 0, max: 2 }, graceMs: 60_000 });
  const gate = new Gate(t);
  const [open, mark] = [gate.file, gate.mark('busy')];
  const abort = new AbortController();
  const call = pool.with({ signal: abort.signal }).run(() => blockUntil(open, mark, 1));
  await gate.reached('busy');
  abort.abort();
  await assert.rejects(call, { code: 'ABORTED' });
  assert.equal(await pool.run(() => 2), 2);
  const [first, second] = pool.stats().workers;
  assert.deepEqual([first?.tasksDone, second?.tasksDone], [0, 1]);
  gate.open();
  await waitFor(() => pool.stats().runningTasks === 0);
});

test('a listener on the signal is gone when the call is settled', async (t) => {
  const pool = openPool(t, { size: 1 });
  const abort = new AbortController();
  let listeners = 0;
  const { addEventListener, removeEventListener } = abort.signal;
  abort.signal.addEventListener = (...given: Parameters<typeof addEventListener>) => {
    listeners += 1;
    Reflect.apply(addEventListener, abort.signal, given);
  };
  abort.signal.removeEventListener = (...given: Parameters<typeof removeEventListener>) => {
    listeners -= 1;
    Reflect.apply(removeEventListener, abort.signal, given);
  };
  const caller = pool.with({ signal: abort.signal });
  await Promise.all([caller.run(() => 1), caller.run(() => 2)]);
  await assert.rejects(caller.run(() => Promise.reject(new Error('no'))));
  assert.equal(listeners, 0);
});

test('one signal for many calls has one listener, and Node warns of no leak', async (t) => {
  const pool = openPool(t, { size: 1 });
  const abort = new AbortController();
  const warnings: string[] = [];
  const onWarning = ({ name }: Error): void => void warnings.push(name);
  process.on('warning', onWarning);
  t.after(() => process.off('warning', onWarning));
  const caller = pool.with({ signal: abort.signal });
  const gate = new Gate(t);
  const [file, mark] = [gate.file, gate.mark('busy')];
  const running = caller.run(() => blockUntil(file, mark, 1));
  const waiting = Array.from({ length: 200 }, () => caller.run(() => 2));
  const inline = pool.with({ signal: abort.signal, whenBusy: 'inline' });
  await gate.reached('busy');
  for (let call = 0; call < 20; call += 1)
    waiting.push(inline.run(() => new Promise<number>(() => {})));
  assert.equal(getEventListeners(abort.signal, 'abort').length, 1);
  abort.abort();
  for (const { status, reason } of (await Promise.allSettled([running, ...waiting])) as {
    status: string;
    reason?: unknown;
  }[]) {
    assert.equal(status, 'rejected');
    assert.equal(Reflect.get(Object(reason), 'code'), 'ABORTED');
  }
  assert.equal(getEventListeners(abort.signal, 'abort').length, 0);
  assert.deepEqual(warnings, []);
  gate.open();
});

test('a signal that is aborted while the call is captured ends the call', async (t) => {
  const pool = openPool(t, { size: 1 });
  const abort = new AbortController();
  const name = 'test:captured';
  subscribe(name, () => abort.abort());
  class Given {
    [Symbol.for('manycore.send')](): number {
      channel(name).publish({}); // the class may not capture the controller
      return 1;
    }
    static [Symbol.for('manycore.receive')](): Given {
      return new Given();
    }
  }
  const call = pool.with({ signal: abort.signal }).run((given: Given) => given, new Given());
  await assert.rejects(call, { code: 'ABORTED' });
});
