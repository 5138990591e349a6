import assert from 'node:assert/strict';
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { hasCode, type TaskStream, taskSignal } from '../../../src/public.js';
import { waitFor, withDeadline } from '../../support/index.js';
import { deadlineMs, Gate, openPool, ways } from '../calls/ways.js';

/** Items that may be under way to a reader that does not read (worker/protocol.ts). */
const leadItems = 16;

for (const way of ways) {
  test(`${way.name}: a generator task gives its items in order, sync and async`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const items: number[] = [];
    const stream = await pool.run(function* count(to: number) {
      for (let value = 0; value < to; value += 1) yield value;
    }, 100);
    for await (const item of stream) items.push(item);
    assert.deepEqual(items, [...Array(100).keys()]);
    const texts: string[] = [];
    const later = await pool.run(async function* () {
      yield 'a';
      await new Promise((resolve) => setImmediate(resolve));
      yield 'b';
    });
    for await (const text of later) texts.push(text);
    assert.deepEqual(texts, ['a', 'b']);
    assert.equal(await pool.run(() => 'free again'), 'free again');
  });

  test(`${way.name}: an endless generator runs no further ahead of its reader than the lead`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const log = new Gate(t).mark('made');
    writeFileSync(log, '');
    const made = (): number => readFileSync(log).byteLength;
    const stream = await pool.run(function* () {
      for (let value = 0; ; value += 1) {
        appendFileSync(log, '.');
        yield value;
      }
    });
    await waitFor(() => made() >= leadItems);
    for (let read = 0; read < 50; read += 1) {
      assert.deepEqual(await stream.next(), { done: false, value: read });
      // One more may be made than may be sent: the generator is called before there is room.
      assert.ok(made() <= read + 1 + leadItems + 1, `${made()} made, ${read + 1} read`);
    }
    await stream.return?.();
    assert.equal(
      await withDeadline(
        pool.run(() => 'free'),
        deadlineMs,
        'the worker is free',
      ),
      'free',
    );
  });

  test(`${way.name}: leaving the loop early runs the generator's finally block`, async (t) => {
    const pool = openPool(t, { size: 1, graceMs: 60_000 }, way);
    const ended = new Gate(t).mark('ended');
    const stream = await pool.run(function* () {
      try {
        for (let value = 0; ; value += 1) yield value;
      } finally {
        writeFileSync(ended, '');
      }
    });
    for await (const item of stream) if (item === 3) break;
    assert.ok(existsSync(ended));
    assert.deepEqual(await stream.next(), { done: true, value: undefined });
  });

  test(`${way.name}: what a generator throws ends the loop with that error`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const stream = await pool.run(async function* () {
      yield 1;
      throw new RangeError('no more');
    });
    assert.deepEqual(await stream.next(), { done: false, value: 1 });
    await assert.rejects(stream.next(), { name: 'RangeError', message: 'no more' });
    assert.equal((await stream.next()).done, true);
  });

  test(`${way.name}: a stream whose worker ends rejects with WORKER_EXITED after its items`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const { file } = new Gate(t);
    const stream = await pool.run(async function* () {
      yield 1;
      while (!existsSync(file)) await new Promise((resolve) => setImmediate(resolve));
      process.exit(4);
    });
    assert.deepEqual(await stream.next(), { done: false, value: 1 });
    const next = stream.next();
    writeFileSync(file, '');
    await assert.rejects(next, { code: 'WORKER_EXITED' });
  });
}

/** Ends of a generator, by the name of the case; `ended` must exist before the reader goes on. */
const endings: Readonly<
  Record<string, (ended: string) => AsyncGenerator<number> | Generator<number>>
> = {
  'a sync one': countAndCatch,
  'an async one': async function* (ended) {
    try {
      for (let value = 0; ; value += 1) yield value;
    } finally {
      for (let turn = 0; turn < 50; turn += 1) await new Promise(setImmediate);
      writeFileSync(ended, '');
    }
  },
  'one that throws': function* (ended) {
    try {
      for (let value = 0; ; value += 1) yield value;
    } finally {
      writeFileSync(ended, '');
      // biome-ignore lint/correctness/noUnsafeFinally: that is the case
      throw new RangeError('in finally');
    }
  },
  'an async one that throws': async function* (ended) {
    try {
      for (let value = 0; ; value += 1) yield value;
    } finally {
      await new Promise(setImmediate);
      writeFileSync(ended, '');
      // biome-ignore lint/correctness/noUnsafeFinally: that is the case
      throw new RangeError('in finally');
    }
  },
};

/** Each way to leave a stream, as the loop or call that does so. */
const leavings: Readonly<Record<string, (stream: TaskStream<number>) => Promise<unknown>>> = {
  break: async (stream) => {
    for await (const item of stream) if (item === 3) break;
  },
  'an error in the loop': async (stream) => {
    for await (const item of stream) if (item === 3) throw new TypeError('of the loop');
  },
  'return()': async (stream) => [await stream.next(), await stream.return(5), await stream.next()],
  'throw()': async (stream) => [await stream.next(), await stream.throw(new TypeError('given'))],
  'return() twice': async (stream) => {
    await stream.next();
    return Promise.allSettled([stream.return(1), stream.return(2)]);
  },
};

async function outcome(work: Promise<unknown>, ended: string): Promise<unknown> {
  try {
    return [await work, existsSync(ended)];
  } catch (error) {
    return [String(error), existsSync(ended)];
  }
}

async function* asStream(items: AsyncIterable<number> | Iterable<number>): AsyncGenerator<number> {
  yield* items;
}

for (const way of [...ways, 'inline'] as const) {
  const wayName = way === 'inline' ? way : way.name;
  test(`${wayName}: who leaves a stream waits for finally, and gets what that throws`, async (t) => {
    const pool = openPool(t, { size: 1, graceMs: 60_000 }, way === 'inline' ? undefined : way);
    const caller = way === 'inline' ? pool.with({ whenBusy: 'inline' }) : pool;
    const gate = new Gate(t);
    if (way === 'inline') pool.run(waitForFile, gate.file).catch(() => {}); // it ends with the pool
    for (const [endingName, ending] of Object.entries(endings)) {
      for (const [leavingName, leave] of Object.entries(leavings)) {
        const name = `${endingName}, ${leavingName}`;
        const [here, there] = [gate.mark(`${name} here`), gate.mark(`${name} there`)];
        const home = await outcome(leave(asStream(ending(here))), here);
        const stream = await caller.run(ending, there);
        assert.deepEqual(await outcome(leave(stream), there), home, name);
      }
    }
  });
}

for (const way of ways) {
  test(`${way.name}: who leaves a stream gets nothing that came of running ahead`, async (t) => {
    const pool = openPool(t, { size: 1, graceMs: 60_000 }, way);
    const stream = await pool.run(function* () {
      yield 1;
      throw new RangeError('later');
    });
    for await (const item of stream) if (item === 1) break;
    assert.deepEqual(await stream.next(), { done: true, value: undefined });
  });

  test(`${way.name}: who leaves a stream waits no longer than the grace time`, async (t) => {
    const pool = openPool(t, { size: 1, graceMs: 5 }, way);
    const gate = new Gate(t);
    const stream = await pool.run(async function* (file: string) {
      yield 1;
      await waitForFile(file);
    }, gate.file);
    for await (const item of stream) if (item === 1) break;
    gate.open();
    assert.equal(await pool.run(() => 'free'), 'free');
  });

  test(`${way.name}: a reader that leaves gets the error of a worker that ends in finally`, async (t) => {
    const pool = openPool(t, { size: 1, graceMs: 60_000 }, way);
    const stream = await pool.run(function* () {
      try {
        for (let value = 0; ; value += 1) yield value;
      } finally {
        process.exit(4);
      }
    });
    await stream.next();
    await assert.rejects(stream.return(), { code: 'WORKER_EXITED' });
  });
}

async function waitForFile(file: string): Promise<void> {
  while (!existsSync(file)) await new Promise((resolve) => setImmediate(resolve));
}

for (const way of [...ways, 'inline'] as const) {
  const name = way === 'inline' ? way : way.name;
  test(`${name}: a stream takes neither values nor errors, and ends its generator`, async (t) => {
    const pool = openPool(t, { size: 1 }, way === 'inline' ? undefined : way);
    const caller = way === 'inline' ? pool.with({ whenBusy: 'inline' }) : pool;
    const gate = new Gate(t);
    if (way === 'inline') {
      pool.run(waitForFile, gate.file).catch(() => {}); // it ends with the pool
    }
    for (const how of ['next', 'throw'] as const) {
      const ended = gate.mark(`ended-${how}`);
      const stream = await caller.run(countAndCatch, ended);
      // @ts-expect-error the types have none, and a generator ignores the first
      assert.deepEqual(await stream.next('ignored'), { done: false, value: 0 });
      assert.deepEqual(await stream.next(), { done: false, value: 1 });
      const error = new RangeError('from the reader');
      // @ts-expect-error the types have none
      const step = how === 'next' ? stream.next(5) : stream.throw(error);
      await assert.rejects(step, (thrown) =>
        how === 'next' ? hasCode(thrown, 'OPTION_INVALID') : thrown === error,
      );
      await waitFor(() => existsSync(ended));
      assert.deepEqual(await stream.next(), { done: true, value: undefined });
      // @ts-expect-error a generator that has ended ignores it
      assert.deepEqual(await stream.next(6), { done: true, value: undefined });
      await assert.rejects(stream.throw(error), error);
    }
  });
}

function* countAndCatch(ended: string): Generator<number, void, undefined> {
  try {
    for (let value = 0; ; value += 1) yield value;
  } finally {
    writeFileSync(ended, '');
  }
}

/** Marks `started`, waits for its abort, marks `ended` when it is ended itself. */
async function generateAfterAbort(started: string, ended: string): Promise<Generator<number>> {
  const signal = taskSignal();
  writeFileSync(started, '');
  await new Promise<void>((resolve) => {
    signal?.addEventListener('abort', () => resolve());
  });
  return countAndMark(ended);
}

function* countAndMark(ended: string): Generator<number> {
  try {
    for (let value = 0; ; value += 1) yield value;
  } finally {
    writeFileSync(ended, '');
  }
}

for (const way of ways) {
  test(`${way.name}: an abort ends an unread stream, and its worker lives on`, async (t) => {
    const pool = openPool(t, { size: 1, graceMs: 60_000 }, way);
    const ended = new Gate(t).mark('ended');
    const abort = new AbortController();
    const stream = await pool.with({ signal: abort.signal }).run(countAndMark, ended);
    assert.deepEqual(await stream.next(), { done: false, value: 0 });
    abort.abort();
    await waitFor(() => existsSync(ended));
    await assert.rejects(
      async () => {
        for await (const _ of stream);
      },
      { code: 'ABORTED' },
    );
    const next = pool.run(() => 'free');
    assert.equal(await withDeadline(next, deadlineMs, 'the worker is free'), 'free');
    assert.equal(pool.stats().exitedWorkers, 0);
  });

  test(`${way.name}: a stream that begins after its abort ends, and its worker lives on`, async (t) => {
    const pool = openPool(t, { size: 1, graceMs: 60_000 }, way);
    const gate = new Gate(t);
    const [started, ended] = [gate.mark('started'), gate.mark('ended')];
    const abort = new AbortController();
    const call = pool.with({ signal: abort.signal }).run(generateAfterAbort, started, ended);
    await gate.reached('started');
    abort.abort();
    await assert.rejects(call, { code: 'ABORTED' });
    const next = pool.run(() => 'free');
    assert.equal(await withDeadline(next, deadlineMs, 'the worker is free'), 'free');
    const { completedTasks, failedTasks, exitedWorkers } = pool.stats();
    assert.deepEqual([completedTasks, failedTasks, exitedWorkers], [1, 1, 0]);
    assert.ok(existsSync(ended));
  });

  test(`${way.name}: an item that cannot travel ends the generator and rejects`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const ended = new Gate(t).mark('ended');
    const stream = await pool.run(function* () {
      try {
        yield 1;
        yield new WeakMap();
        yield 2;
      } finally {
        writeFileSync(ended, '');
      }
    });
    assert.deepEqual(await stream.next(), { done: false, value: 1 });
    await assert.rejects(stream.next(), { code: 'TRANSFER_UNSUPPORTED' });
    assert.ok(existsSync(ended));
    assert.equal((await stream.next()).done, true);
    assert.equal(await pool.run(() => 'free'), 'free');
    assert.equal(pool.stats().startedWorkers, 1);
  });

  test(`${way.name}: an item that cannot be read here ends the generator and rejects`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const ended = new Gate(t).mark('ended');
    const stream = await pool.run(function* () {
      class Unreadable {
        [Symbol.for('manycore.send')](): number {
          return 1;
        }
        static [Symbol.for('manycore.receive')](): Unreadable {
          throw new RangeError('not here');
        }
      }
      try {
        yield 'first';
        for (;;) yield new Unreadable();
      } finally {
        writeFileSync(ended, '');
      }
    });
    assert.deepEqual(await stream.next(), { done: false, value: 'first' });
    const next = withDeadline(stream.next(), deadlineMs, 'the second item');
    await assert.rejects(
      next,
      ({ code, cause }: Error & { code?: string }) =>
        code === 'TRANSFER_UNSUPPORTED' && cause instanceof RangeError,
    );
    await waitFor(() => existsSync(ended));
    assert.equal((await stream.next()).done, true);
    assert.equal(await pool.run(() => 'free'), 'free');
    const { startedWorkers, completedTasks, failedTasks } = pool.stats();
    assert.deepEqual([startedWorkers, completedTasks, failedTasks], [1, 1, 1]);
  });
}

test('several reads ahead of the items are answered in order', async (t) => {
  const pool = openPool(t, { size: 1 });
  const stream = await pool.run(function* () {
    yield* [1, 2, 3];
  });
  const steps = await Promise.all([1, 2, 3, 4].map(() => stream.next()));
  assert.deepEqual(
    steps.map(({ done, value }) => (done ? 'end' : value)),
    [1, 2, 3, 'end'],
  );
});
