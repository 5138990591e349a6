// Results one by one. That a stream reads its input no further than `lead` is in source.slow.test.ts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type MapStream, pmap } from '../../src/public.js';
import { deadlineMs, Gate, openPool } from '../pool/calls/ways.js';
import { blockUntil } from '../pool/tasks.js';
import { waitFor, withDeadline } from '../support/index.js';
import { spinFor } from './mappers.js';
import { count, mapWays, turns, via, workerWays } from './ways.js';

async function readAll<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const results: T[] = [];
  for await (const result of stream) results.push(result);
  return results;
}

/** Fails on the item `at`. */
function failingAt(at: number): (item: number) => number {
  return (item) => {
    if (item === at) throw new RangeError(`not ${at}`);
    return item;
  };
}

for (const way of mapWays) {
  test(`${way.name}: a stream gives the results in the order of the items`, async () => {
    const work = (item: number): number => (item % 50 === 0 ? spinFor(1, item) : item);
    assert.deepEqual(await readAll(pmap.stream(count(1000), work, via(way))), count(1000));
  });

  test(`${way.name}: a stream as results come gives each once`, async () => {
    const stream = pmap.stream(count(1000), (item) => item, {
      ...via(way),
      ordered: false,
      chunk: 7,
    });
    const results = await readAll(stream);
    assert.deepEqual(
      results.sort((a, b) => a - b),
      count(1000),
    );
  });

  test(`${way.name}: of holes a stream gives nothing`, async () => {
    const items = [1, 2, 3, 4];
    delete items[1];
    assert.deepEqual(
      await readAll(pmap.stream(items, (item) => item * 10, via(way))),
      [10, 30, 40],
    );
  });

  test(`${way.name}: a stream over a typed array gives its results one by one`, async () => {
    const items = new Float32Array(count(100));
    assert.deepEqual(
      await readAll(pmap.stream(items, (item) => item / 2, via(way))),
      count(100).map((item) => item / 2),
    );
  });

  test(`${way.name}: a stream over nothing ends at once`, async () => {
    assert.deepEqual(await readAll(pmap.stream([], () => 1, via(way))), []);
  });

  test(`${way.name}: a stream that is never read opens nothing and calls nothing`, async () => {
    let opened = 0;
    const items = {
      [Symbol.iterator]() {
        opened += 1;
        return [1, 2][Symbol.iterator]();
      },
    };
    const unread = pmap.stream(items, (item) => item, via(way));
    const left = pmap.stream(items, (item) => item, via(way));
    assert.deepEqual(await left.return?.(), { done: true, value: undefined });
    assert.deepEqual(await left.next(), { done: true, value: undefined });
    await turns(5);
    assert.deepEqual([opened, unread.stats().chunks, unread.stats().doneItems], [0, 0, 0]);
  });

  test(`${way.name}: results before the one that failed come first, then its error, then the end`, async () => {
    const stream = pmap.stream(count(40), failingAt(21), { ...via(way), chunk: 1 });
    const seen: number[] = [];
    const read = async (): Promise<void> => {
      for await (const result of stream) seen.push(result);
    };
    await assert.rejects(read(), { name: 'RangeError', message: 'not 21', itemIndex: 21 });
    assert.deepEqual(seen, count(21));
    assert.deepEqual(await stream.next(), { done: true, value: undefined });
  });

  test(`${way.name}: outcomes come one by one as well`, async () => {
    const stream = pmap.stream(count(10), failingAt(4), { ...via(way), chunk: 3, settled: true });
    const outcomes = await readAll(stream);
    assert.deepEqual(
      outcomes.map((each) => (each.status === 'fulfilled' ? each.value : each.reason.message)),
      [0, 1, 2, 3, 'not 4', 5, 6, 7, 8, 9],
    );
  });

  test(`${way.name}: of two loops over one stream each result goes to one`, async () => {
    const stream = pmap.stream(count(200), (item) => item, via(way));
    const [first, second] = await Promise.all([readAll(stream), readAll(stream)]);
    assert.deepEqual(
      [...first, ...second].sort((a, b) => a - b),
      count(200),
    );
    assert.ok(first.length > 0 && second.length > 0);
    assert.deepEqual(await readAll(stream), []);
  });

  test(`${way.name}: results that are requested ahead come in the order of the requests`, async () => {
    const stream = pmap.stream(count(20), (item) => item, { ...via(way), chunk: 1 });
    const steps = await Promise.all(count(21).map(() => stream.next()));
    assert.deepEqual(
      steps.map((step) => step.value),
      [...count(20), undefined],
    );
  });

  test(`${way.name}: a reader that throws in its loop gets its own error, and the input is closed`, async () => {
    let closed = 0;
    function* items(): Generator<number> {
      try {
        for (let item = 0; ; item += 1) yield item;
      } finally {
        closed += 1;
      }
    }
    const read = async (): Promise<void> => {
      for await (const result of pmap.stream(items(), (item) => item, via(way))) {
        if (result === 5) throw new Error('the reader has enough');
      }
    };
    await assert.rejects(read(), /the reader has enough/);
    assert.equal(closed, 1);
  });

  test(`${way.name}: stats() of a stream: not begun, running, over`, async () => {
    const stream = pmap.stream(count(30), (item) => item, { ...via(way), chunk: 10 });
    assert.deepEqual([stream.stats().why, stream.stats().doneItems], ['it did not begin', 0]);
    await stream.next();
    assert.equal(stream.stats().channel, way.way?.channel ?? 'inline');
    await readAll(stream);
    const { doneItems, totalItems, chunks } = stream.stats();
    assert.deepEqual([doneItems, totalItems, chunks], [30, 30, 3]);
  });

  test(`${way.name}: a stream of what cannot be mapped, or by what cannot map, throws at the call`, () => {
    for (const items of [undefined, null, 5, {}, () => 1]) {
      const open = () => Reflect.apply(pmap.stream, undefined, [items, () => 1, via(way)]);
      assert.throws(open, { code: 'OPTION_INVALID' });
    }
    const noMapper = () => Reflect.apply(pmap.stream, undefined, [[1], 'map', via(way)]);
    assert.throws(noMapper, { code: 'TASK_NOT_FUNCTION' });
    const noOption = () => Reflect.apply(pmap.stream, undefined, [[1], () => 1, { chunks: 5 }]);
    assert.throws(noOption, { code: 'OPTION_INVALID' });
  });
}

for (const way of workerWays) {
  test(`${way.name}: a stream that is never read starts no worker`, async (t) => {
    const pool = openPool(t, { size: 1 }, way.way);
    pmap.stream(count(10), (item) => item, { pool });
    await turns(5);
    assert.equal(pool.stats().startedWorkers, 0);
  });

  test(`${way.name}: first come, first served: what is held at work holds no other result`, async (t) => {
    const gate = new Gate(t);
    const [file, mark] = [gate.file, gate.mark('held')];
    const stream = pmap.stream(
      count(8),
      (item) => (item === 0 ? blockUntil(file, mark, 0) : item),
      { pool: openPool(t, { size: 2 }, way.way), ordered: false, chunk: 1 },
    );
    const others: unknown[] = [];
    while (others.length < 7) {
      const step = await withDeadline(stream.next(), deadlineMs, 'a result of another item');
      others.push(step.value);
    }
    assert.deepEqual(others.sort(), [1, 2, 3, 4, 5, 6, 7]);
    gate.open();
    assert.deepEqual(await stream.next(), { done: false, value: 0 });
  });

  test(`${way.name}: in order no result passes one that is held at work`, async (t) => {
    const gate = new Gate(t);
    const [file, mark] = [gate.file, gate.mark('held')];
    const stream = pmap.stream(
      count(8),
      (item) => (item === 0 ? blockUntil(file, mark, 0) : item),
      { pool: openPool(t, { size: 2 }, way.way), chunk: 1 },
    );
    let isFirstHere = false;
    const first = stream.next().finally(() => {
      isFirstHere = true;
    });
    await waitFor(() => stream.stats().doneItems === 7, deadlineMs, 'the others are through');
    assert.equal(isFirstHere, false);
    gate.open();
    assert.deepEqual(await first, { done: false, value: 0 });
    assert.deepEqual(await readAll(stream), [1, 2, 3, 4, 5, 6, 7]);
  });

  test(`${way.name}: a reader that leaves while it waits closes the input`, async () => {
    let isClosed = false;
    const silent = {
      [Symbol.asyncIterator]: () => ({
        next: () => new Promise<never>(() => {}),
        return: async () => {
          isClosed = true;
          return { done: true as const, value: undefined };
        },
      }),
    };
    const stream = pmap.stream(silent, (item) => item, via(way));
    const next = stream.next();
    const left = withDeadline(Promise.all([next, stream.return?.()]), deadlineMs, 'it is left');
    assert.deepEqual(await left, [
      { done: true, value: undefined },
      { done: true, value: undefined },
    ]);
    assert.equal(isClosed, true);
    assert.deepEqual(await stream.next(), { done: true, value: undefined });
  });

  test(`${way.name}: a reader that leaves frees the workers, which live on`, async (t) => {
    const pool = openPool(t, { size: 2, graceMs: 60_000 }, way.way);
    await pool.warm();
    const { startedWorkers, exitedWorkers } = pool.stats();
    for await (const result of pmap.stream(count(10_000), (item) => item, { pool, chunk: 10 })) {
      if (result === 100) break;
    }
    await waitFor(() => pool.stats().runningTasks === 0 && pool.stats().waitingTasks === 0);
    assert.equal(await pool.run(() => 'next'), 'next');
    const after = pool.stats();
    assert.deepEqual([after.startedWorkers, after.exitedWorkers], [startedWorkers, exitedWorkers]);
  });

  test(`${way.name}: a reader that leaves frees also a worker whose mapper never ends`, async (t) => {
    const pool = openPool(t, { size: 1, graceMs: 50 }, way.way);
    const work = (item: number): number => {
      while (item === 3);
      return item;
    };
    for await (const result of pmap.stream(count(10), work, { pool, chunk: 1 })) {
      if (result === 2) break;
    }
    const next = pool.run(() => 'next');
    assert.equal(await withDeadline(next, deadlineMs, 'the pool works on'), 'next');
  });

  test(`${way.name}: a stream by what cannot travel fails when it is read, before its input is opened`, async () => {
    let opened = 0;
    const items = {
      [Symbol.iterator]() {
        opened += 1;
        return [1][Symbol.iterator]();
      },
    };
    const handle = new WeakRef({});
    const stream: MapStream<unknown> = pmap.stream(items, () => handle.deref(), via(way));
    await assert.rejects(stream.next(), { code: 'TRANSFER_UNSUPPORTED' });
    assert.equal(opened, 0);
    assert.deepEqual(await stream.next(), { done: true, value: undefined });
  });
}
