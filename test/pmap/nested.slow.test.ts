// Maps in mappers, at any depth, run and end: no worker waits for one that waits for it. That others take
// part in them: relayed.slow.test.ts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { threadId } from 'node:worker_threads';
import { Pool, pmap, run } from '../../src/public.js';
import { deadlineMs, openPool } from '../pool/calls/ways.js';
import { withDeadline } from '../support/index.js';
import { count, mapWays, via, workerWays } from './ways.js';

/** Returns the result of three levels of maps over `items` items each. */
function cube(items: number): number[][][] {
  return count(items).map((a) =>
    count(items).map((b) => count(items).map((c) => a * 100 + b * 10 + c)),
  );
}

for (const way of workerWays) {
  for (const size of [1, 2]) {
    test(`${way.name}: three levels of maps end in a pool of ${size}`, async (t) => {
      const pool = openPool(t, { size }, way.way);
      const four = count(4);
      const map = pmap(four, (a) => pmap(four, (b) => pmap(four, (c) => a * 100 + b * 10 + c)), {
        pool,
      });
      assert.deepEqual(await withDeadline(map, deadlineMs, 'the maps'), cube(4));
      assert.ok(pool.stats().startedWorkers <= size);
    });

    test(`${way.name}: three levels of maps on a captured pool of ${size} end`, async (t) => {
      const pool = openPool(t, { size }, way.way);
      const four = count(4);
      const map = pmap(
        four,
        (a) => pmap(four, (b) => pmap(four, (c) => a * 100 + b * 10 + c, { pool }), { pool }),
        { pool },
      );
      assert.deepEqual(await withDeadline(map, deadlineMs, 'the maps'), cube(4));
      assert.ok(pool.stats().startedWorkers <= size);
    });

    test(`${way.name}: maps in tasks in maps end in a pool of ${size}`, async (t) => {
      const pool = openPool(t, { size }, way.way);
      const work = pool.run(async () => {
        const inner = await pmap([1, 2, 3], (item) => pool.run((given: number) => given * 2, item));
        const outer = await pmap([4, 5], async (item) => run((given: number) => given * 3, item));
        return [inner, outer];
      });
      assert.deepEqual(await withDeadline(work, deadlineMs, 'the work'), [
        [2, 4, 6],
        [12, 15],
      ]);
    });
  }

  for (const size of [1, 2]) {
    test(`${way.name}: inner maps run in the ${size} workers of the pool, and say so`, async (t) => {
      const pool = openPool(t, { size }, way.way);
      const where = (): string => `${process.pid} ${threadId}`;
      const outcomes = await pmap(
        count(6),
        async () => {
          const inner = pmap(count(3), where);
          const asked = pmap(count(3), where, { channel: 'shm' });
          const places = [where(), ...(await inner), ...(await asked)];
          return { places, channels: [inner.stats().channel, asked.stats().channel] };
        },
        { pool },
      );
      const places = new Set(outcomes.flatMap((outcome) => outcome.places));
      assert.ok(places.size <= size, [...places].join(', '));
      assert.ok(!places.has(where()));
      const channels = outcomes.map((outcome) => outcome.channels);
      assert.deepEqual(channels, new Array(6).fill(['inline', 'inline']));
    });
  }

  test(`${way.name}: every form of a map works in a mapper`, async (t) => {
    const pool = openPool(t, { size: 2 }, way.way);
    const map = pmap(
      [1, 2],
      async (factor) => {
        const streamed: number[] = [];
        async function* items(): AsyncGenerator<number> {
          yield* [1, 2, 3];
        }
        for await (const result of pmap.stream(items(), (item) => item * factor)) {
          streamed.push(result);
        }
        return {
          streamed,
          filtered: await pmap.filter(streamed, (item) => item % 2 === 0),
          reduced: await pmap.reduce(
            streamed,
            (item) => `${item}`,
            (left, right) => left + right,
            '>',
          ),
          pairs: await pmap.pairs(streamed, (a, b) => a * b),
          filled: await pmap(new Uint8Array(streamed), (item) => item + 1),
          settled: await pmap(
            streamed,
            (item) => {
              if (item === 2) throw new RangeError('two');
              return item;
            },
            { settled: true },
          ),
        };
      },
      { pool },
    );
    const [first, second] = await withDeadline(map, deadlineMs, 'the maps');
    assert.deepEqual(
      [first?.streamed, first?.filtered, first?.reduced, first?.pairs, [...(first?.filled ?? [])]],
      [[1, 2, 3], [2], '>123', [2, 3, 6], [2, 3, 4]],
    );
    assert.deepEqual(
      [second?.streamed, second?.filtered, second?.reduced, second?.pairs],
      [[2, 4, 6], [2, 4, 6], '>246', [8, 12, 24]],
    );
    assert.deepEqual(
      first?.settled.map(({ status }) => status),
      ['fulfilled', 'rejected', 'fulfilled'],
    );
  });

  test(`${way.name}: a map in a mapper fails with its own error, and both lists of items live on`, async (t) => {
    const pool = openPool(t, { size: 1 }, way.way);
    const inner = (item: number): number => {
      if (item === 2) throw new RangeError('two');
      return item;
    };
    const map = pmap(count(3), (items) => pmap(count(items + 1), inner), { pool, settled: true });
    const outcomes = await withDeadline(map, deadlineMs, 'the maps');
    assert.deepEqual(
      outcomes.map((each) => (each.status === 'fulfilled' ? each.value : each.reason.message)),
      [[0], [0, 1], 'two'],
    );
  });

  test(`${way.name}: a mapper that makes a pool of its own maps in it, and closes it`, async (t) => {
    const pool = openPool(t, { size: 1 }, way.way);
    const map = pmap(
      [1, 2],
      async (factor) => {
        const inner = new Pool({ size: 1 });
        const results = await pmap([1, 2, 3], (item) => item * factor, { pool: inner });
        await inner.close();
        return results;
      },
      { pool },
    );
    assert.deepEqual(await withDeadline(map, deadlineMs, 'the maps'), [
      [1, 2, 3],
      [2, 4, 6],
    ]);
  });
}

for (const way of mapWays) {
  test(`${way.name}: a map called inline maps in workers within its mapper`, async () => {
    const options = via(way);
    const map = pmap([1, 2, 3], (factor) => pmap(count(3), (item) => item * factor, options), {
      channel: 'inline',
    });
    assert.deepEqual(await withDeadline(map, deadlineMs, 'the maps'), [
      [0, 1, 2],
      [0, 2, 4],
      [0, 3, 6],
    ]);
  });
}
