// Maps and the life of their pool: workers that cannot start, that are replaced, that run several tasks
// at a time; pools that have no room, or go.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pmap } from '../../src/public.js';
import { deadlineMs, openPool } from '../pool/calls/ways.js';
import { spinMs } from '../pool/tasks.js';
import { waitFor, withDeadline } from '../support/index.js';
import { count, workerWays } from './ways.js';

/** An endless source, and whether it was opened and closed. */
function endless() {
  const seen = { opened: 0, closed: 0 };
  const now = {
    *[Symbol.iterator](): Generator<number> {
      seen.opened += 1;
      try {
        for (let item = 0; ; item += 1) yield item;
      } finally {
        seen.closed += 1;
      }
    },
  };
  const later = {
    async *[Symbol.asyncIterator](): AsyncGenerator<number> {
      for (const item of now) {
        await new Promise((turn) => setImmediate(turn));
        yield item;
      }
    },
  };
  return { seen, now, later };
}

for (const way of workerWays) {
  test(`${way.name}: destroy() of the pool in the middle rejects a map with POOL_CLOSED, and closes its source`, async (t) => {
    const pool = openPool(t, { size: 2 }, way.way);
    const { seen, now } = endless();
    const map = pmap(now, () => spinMs(1), { pool, chunk: 2 });
    map.catch(() => {});
    await waitFor(() => map.stats().chunks > 3);
    const ending = pool.destroy();
    await assert.rejects(withDeadline(map, deadlineMs, 'the map'), { code: 'POOL_CLOSED' });
    await withDeadline(ending, deadlineMs, 'destroy()');
    assert.equal(seen.closed, 1);
  });

  test(`${way.name}: close() of the pool in the middle waits for the map, and takes no other`, async (t) => {
    const pool = openPool(t, { size: 2 }, way.way);
    const items = Array.from({ length: 200 }, (_, index) => index);
    const map = pmap(items, (item) => item + 1, { pool, chunk: 1 });
    await waitFor(() => map.stats().chunks > 3);
    const ending = pool.close();
    await assert.rejects(
      pmap(items, () => 1, { pool }),
      { code: 'POOL_CLOSED' },
    );
    assert.equal((await withDeadline(map, deadlineMs, 'the map')).length, 200);
    await withDeadline(ending, deadlineMs, 'close()');
  });

  test(`${way.name}: a map on a closed pool rejects with POOL_CLOSED, and opens nothing`, async (t) => {
    const pool = openPool(t, { size: 1 }, way.way);
    await pool.close();
    const { seen, now } = endless();
    for (const map of [
      pmap(now, () => 1, { pool }),
      pmap.filter(now, () => 1, { pool }),
      pmap.stream(now, () => 1, { pool }).next(),
      pmap.pairs([1, 2], () => 1, { pool }),
      pmap(new Float64Array(3), () => 1, { pool }),
    ]) {
      await assert.rejects(map, { code: 'POOL_CLOSED' });
    }
    assert.equal(seen.opened, 0);
  });

  test(`${way.name}: a stream whose pool is destroyed ends with POOL_CLOSED`, async (t) => {
    const pool = openPool(t, { size: 1 }, way.way);
    const { seen, later } = endless();
    const read = async (): Promise<void> => {
      for await (const result of pmap.stream(later, (item) => item, { pool, settled: true })) {
        if (result.status === 'fulfilled' && result.value === 10) void pool.destroy();
      }
    };
    await assert.rejects(withDeadline(read(), deadlineMs, 'the stream'), { code: 'POOL_CLOSED' });
    await waitFor(() => seen.closed === 1);
  });

  test(`${way.name}: a map goes on in the workers that replace those which had enough tasks`, async (t) => {
    const pool = openPool(t, { size: 1, maxTasksPerWorker: 5 }, way.way);
    const list = [1000];
    const map = pmap(count(23), (item) => item + (list[0] ?? 0), { pool, chunk: 1 });
    const results = await withDeadline(map, deadlineMs, 'the map');
    assert.deepEqual(
      results,
      count(23).map((item) => item + 1000),
    );
    assert.ok(pool.stats().startedWorkers >= 5);
  });

  test(`${way.name}: a map fits into a pool whose tasks may not wait`, async (t) => {
    const pool = openPool(t, { size: 2, maxWaitingTasks: 0 }, way.way);
    await pool.warm();
    const map = pmap([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], (item) => item, { pool, chunk: 1 });
    assert.deepEqual(await map, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  });

  test(`${way.name}: a map that is aborted while its workers start rejects, and the pool works`, async (t) => {
    const pool = openPool(t, { size: 2 }, way.way);
    const abort = new AbortController();
    const list = [1];
    const map = pmap(count(100), (item) => item + list.length, { pool, signal: abort.signal });
    map.catch(() => {});
    await new Promise((turn) => setImmediate(turn));
    abort.abort();
    await assert.rejects(map, { code: 'ABORTED' });
    assert.deepEqual(await pmap([1], (item) => item + list.length, { pool }), [2]);
  });

  test(`${way.name}: workers that run several tasks at a time map in order, and fail as others do`, async (t) => {
    const pool = openPool(t, { size: 2, concurrentTasksPerWorker: 4, graceMs: 60_000 }, way.way);
    const later = async (item: number): Promise<number> => {
      for (let turn = 0; turn < item % 5; turn += 1) {
        await new Promise((resolve) => setImmediate(resolve));
      }
      if (item < 0) throw new RangeError(`${item}`);
      return item;
    };
    assert.deepEqual(await pmap(count(300), later, { pool, chunk: 7 }), count(300));
    const map = pmap([...count(200), -1, ...count(50)], later, { pool, chunk: 7 });
    await assert.rejects(map, { name: 'RangeError', itemIndex: 200 });
    assert.deepEqual(await pmap(count(30), later, { pool }), count(30));
    assert.equal(pool.stats().exitedWorkers, 0);
  });

  test(`${way.name}: a pool that grows with the load maps as one of a fixed size`, async (t) => {
    const pool = openPool(t, { size: { min: 0, max: 2 } }, way.way);
    const map = pmap(count(500), (item) => item, { pool, chunk: 3 });
    assert.deepEqual(await map, count(500));
    assert.equal(map.stats().workers, 2);
  });
}

for (const kind of ['process', 'thread'] as const) {
  test(`${kind}: a map whose workers cannot start rejects with WORKER_START_FAILED, and closes its source`, async (t) => {
    const setup = (): never => {
      throw new RangeError('no database');
    };
    for (const settled of [false, true]) {
      const pool = openPool(t, { size: 1, setup, worker: kind, startRetryMs: 100 });
      const { seen, now } = endless();
      const map = settled
        ? pmap(now, (item) => item, { pool, settled })
        : pmap(now, (item) => item, { pool });
      await assert.rejects(withDeadline<unknown>(map, deadlineMs, 'the map'), {
        code: 'WORKER_START_FAILED',
        message: /no database/,
      });
      assert.deepEqual(seen, { opened: 1, closed: 1 });
    }
  });
}
