// Maps that are given up: by their signal, or because their pool goes.

import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { pmap, taskSignal } from '../../src/public.js';
import { deadlineMs, Gate, openPool } from '../pool/calls/ways.js';
import { spinMs } from '../pool/tasks.js';
import { waitFor, withDeadline } from '../support/index.js';
import { count, mapWays, turns, via, workerWays } from './ways.js';

const reason = new Error('not today');
const aborted = { code: 'ABORTED', cause: reason };

/** An endless source that counts how often it was opened and closed. */
function endless() {
  const seen = { opened: 0, closed: 0, read: 0 };
  const now = {
    *[Symbol.iterator](): Generator<number> {
      seen.opened += 1;
      try {
        while (true) {
          seen.read += 1;
          yield seen.read - 1;
        }
      } finally {
        seen.closed += 1;
      }
    },
  };
  const later = {
    async *[Symbol.asyncIterator](): AsyncGenerator<number> {
      seen.opened += 1;
      try {
        while (true) {
          await new Promise((turn) => setImmediate(turn));
          seen.read += 1;
          yield seen.read - 1;
        }
      } finally {
        seen.closed += 1;
      }
    },
  };
  return { seen, now, later };
}

for (const way of mapWays) {
  test(`${way.name}: a signal that is aborted before the call begins nothing, in any form of a map`, async () => {
    const { seen, now } = endless();
    const options = { ...via(way), signal: AbortSignal.abort(reason) };
    const never = (): never => assert.fail('called');
    await assert.rejects(pmap(now, never, options), aborted);
    await assert.rejects(pmap.stream(now, never, options).next(), aborted);
    await assert.rejects(pmap.filter(now, never, options), aborted);
    await assert.rejects(pmap.reduce(now, never, never, 0 as never, options), aborted);
    await assert.rejects(pmap.pairs([1, 2], never, options), aborted);
    await assert.rejects(pmap(new Float64Array(2), never, options), aborted);
    await assert.rejects(pmap([1], never, { ...options, settled: true }), aborted);
    await turns(3);
    assert.deepEqual(seen, { opened: 0, closed: 0, read: 0 });
  });

  for (const kind of ['now', 'later'] as const) {
    test(`${way.name}: a map over an endless source (${kind}) is aborted, and its source closed`, async () => {
      const { seen, [kind]: items } = endless();
      const abort = new AbortController();
      const map = pmap(items, (item) => item, { ...via(way), signal: abort.signal });
      map.catch(() => {});
      await waitFor(() => map.stats().chunks > 3, deadlineMs, 'it is at work');
      abort.abort(reason);
      await assert.rejects(withDeadline(map, deadlineMs, 'the map'), aborted);
      await waitFor(() => seen.closed === 1);
      const { read } = seen;
      await turns(20);
      assert.equal(seen.read, read);
    });

    test(`${way.name}: a stream over an endless source (${kind}) is aborted while it is read`, async () => {
      const { seen, [kind]: items } = endless();
      const abort = new AbortController();
      const read = async (): Promise<void> => {
        const options = { ...via(way), signal: abort.signal };
        for await (const result of pmap.stream(items, (item) => item, options)) {
          if (result === 20) abort.abort(reason);
        }
      };
      await assert.rejects(withDeadline(read(), deadlineMs, 'the stream'), aborted);
      await waitFor(() => seen.closed === 1);
    });
  }

  for (const [what, returns] of [
    ['is closed', true],
    ['cannot be closed', false],
  ] as const) {
    test(`${way.name}: a map whose async source keeps it waiting is aborted at once; the source ${what}`, async () => {
      let closed = 0;
      const close = async (): Promise<IteratorResult<number>> => {
        closed += 1;
        return { done: true, value: undefined };
      };
      const items: AsyncIterable<number> = {
        [Symbol.asyncIterator]: () => ({
          next: () => new Promise<never>(() => {}),
          ...(returns && { return: close }),
        }),
      };
      const abort = new AbortController();
      const options = { ...via(way), signal: abort.signal };
      const maps: Promise<unknown>[] = [
        pmap(items, (item) => item, options),
        pmap.stream(items, (item) => item, options).next(),
        pmap.filter(items, () => true, options),
        pmap.reduce(
          items,
          (item) => item,
          (left) => left,
          0,
          options,
        ),
      ];
      await turns(5);
      abort.abort(reason);
      for (const map of maps)
        await assert.rejects(withDeadline(map, deadlineMs, 'the map'), aborted);
      assert.equal(closed, returns ? 4 : 0);
    });
  }

  test(`${way.name}: what an async source yields after the abort is not mapped`, async () => {
    let goOn = (): void => {};
    const wanted = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    let called = 0;
    async function* items(): AsyncGenerator<number> {
      yield 1;
      await wanted;
      called += 1;
      yield 2;
      called += 1;
      yield 3;
    }
    const abort = new AbortController();
    const map = pmap(items(), (item) => item, { ...via(way), signal: abort.signal });
    map.catch(() => {});
    await waitFor(() => map.stats().doneItems === 1);
    abort.abort(reason);
    await assert.rejects(map, aborted);
    goOn();
    await turns(10);
    assert.deepEqual([called, map.stats().doneItems], [1, 1]);
  });

  test(`${way.name}: an aborted map begins no further items of an async chunk`, async (t) => {
    const gate = new Gate(t);
    const { folder } = gate;
    const abort = new AbortController();
    const mapper = async (item: number): Promise<void> => {
      const { existsSync, writeFileSync } = await import('node:fs');
      const signal = taskSignal(); // there is none in the caller
      writeFileSync(`${folder}/mark-${item}`, '');
      const isOver = (): boolean => signal?.aborted ?? existsSync(`${folder}/open`);
      while (!isOver()) await new Promise((turn) => setTimeout(turn, 1));
      writeFileSync(`${folder}/mark-end-${item}`, '');
    };
    const pool = way.way && openPool(t, { size: 1, graceMs: 60_000 }, way.way);
    const where = pool === undefined ? via(way) : { pool };
    const map = pmap(count(50), mapper, { ...where, chunk: 50, signal: abort.signal });
    map.catch(() => {});
    await gate.reached('0');
    abort.abort(reason);
    await assert.rejects(map, aborted);
    gate.open();
    await gate.reached('end-0');
    if (pool === undefined) await turns(20);
    else
      await waitFor(() => pool.stats().workers.every(({ tasksInFlight }) => tasksInFlight === 0));
    assert.deepEqual(gate.marks, ['0', 'end-0']);
  });

  test(`${way.name}: a map that is over does not listen to its signal any more`, async () => {
    const { signal } = new AbortController();
    await pmap(count(50), (item) => item, { ...via(way), signal, chunk: 1 });
    const fail = (): never => {
      throw new Error('failed');
    };
    await assert.rejects(pmap(count(5), fail, { ...via(way), signal }), /failed/);
    for await (const _ of pmap.stream(count(50), (item) => item, { ...via(way), signal })) break;
    await turns(5);
    assert.equal(getEventListeners(signal, 'abort').length, 0);
  });
}

for (const way of workerWays) {
  test(`${way.name}: a map that is aborted after it ended resolves`, async () => {
    const abort = new AbortController();
    const results = await pmap(count(5), (item) => item, { ...via(way), signal: abort.signal });
    abort.abort(reason);
    assert.deepEqual(results, count(5));
    assert.deepEqual(await pmap([1], (item) => item, via(way)), [1]);
  });

  test(`${way.name}: an aborted map frees its workers, which live on`, async (t) => {
    const pool = openPool(t, { size: 2, graceMs: 60_000 }, way.way);
    await pool.warm();
    const { startedWorkers, exitedWorkers } = pool.stats();
    const abort = new AbortController();
    const map = pmap(count(1000), () => spinMs(1), { pool, signal: abort.signal, chunk: 5 });
    map.catch(() => {});
    await waitFor(() => map.stats().chunks > 3);
    abort.abort(reason);
    await assert.rejects(map, aborted);
    await waitFor(() => pool.stats().runningTasks + pool.stats().waitingTasks === 0);
    assert.equal(await pool.run(() => 'next'), 'next');
    const after = pool.stats();
    assert.deepEqual([after.startedWorkers, after.exitedWorkers], [startedWorkers, exitedWorkers]);
  });

  test(`${way.name}: the abort reaches a mapper by its own signal`, async (t) => {
    const gate = new Gate(t);
    const [waiting, heard] = [gate.mark('waiting'), gate.mark('heard')];
    const abort = new AbortController();
    const mapper = async (): Promise<void> => {
      const { writeFileSync } = await import('node:fs');
      const isOver = new Promise<unknown>((resolve) => {
        taskSignal()?.addEventListener('abort', resolve);
      });
      writeFileSync(waiting, '');
      await isOver;
      writeFileSync(heard, '');
    };
    const pool = openPool(t, { size: 1, graceMs: 60_000 }, way.way);
    const map = pmap([1], mapper, { pool, signal: abort.signal });
    await gate.reached('waiting');
    abort.abort(reason);
    await assert.rejects(map, aborted);
    await gate.reached('heard');
    assert.equal(pool.stats().exitedWorkers, 0);
  });

  test(`${way.name}: a map in an endless loop is aborted, and its pool works on after the grace time`, async (t) => {
    const gate = new Gate(t);
    const mark = gate.mark('loop');
    const pool = openPool(t, { size: 1, graceMs: 50 }, way.way);
    const abort = new AbortController();
    const mapper = async (): Promise<never> => {
      const { writeFileSync } = await import('node:fs');
      writeFileSync(mark, '');
      for (;;);
    };
    const map = pmap(count(3), mapper, { pool, signal: abort.signal });
    await gate.reached('loop');
    abort.abort(reason);
    await assert.rejects(map, aborted);
    const next = pmap([1], (item) => item, { pool });
    assert.deepEqual(await withDeadline(next, deadlineMs, 'a new worker'), [1]);
  });
}
