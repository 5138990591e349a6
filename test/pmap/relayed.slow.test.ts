// A map inside a task uses idle workers, with the same results as in its own worker. The items that another
// worker gets cannot be predicted, so each test maps again until one got some.

import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { threadId } from 'node:worker_threads';
import { type Pool, pmap, shared } from '../../src/public.js';
import { deadlineMs, Gate, openPool, processWays } from '../pool/calls/ways.js';
import { waitFor } from '../support/index.js';
import { crash, isFirst, spinFor } from './mappers.js';
import { count, workerWays } from './ways.js';

const itemCount = 60;

/** Name of the worker that runs this. */
function place(): string {
  return `${process.pid} ${threadId}`;
}

/**
 * Returns the outcome of a task in a pool of two workers, repeated until another worker took part in it.
 */
async function untilRelayed<T>(pool: Pool, mark: string, work: () => Promise<T>): Promise<T> {
  await pool.warm();
  return waitFor(
    async () => {
      const outcome = await pool.run(work).then(
        (value) => () => value as T,
        (error: unknown) => () => {
          throw error;
        },
      );
      return existsSync(mark) && { outcome };
    },
    deadlineMs,
    'another worker takes part in the map of a task',
  ).then(({ outcome }) => outcome());
}

for (const way of workerWays) {
  test(`${way.name}: an idle worker maps items of a map in a task`, async (t) => {
    const mark = new Gate(t).mark('relayed');
    const pool = openPool(t, { size: 2 }, way.way);
    const work = async (): Promise<number[]> => {
      const here = place();
      return pmap(
        count(itemCount),
        (item) => {
          if (place() !== here) writeFileSync(mark, '');
          return spinFor(1, item * 2);
        },
        { chunk: 1 },
      );
    };
    const results = await untilRelayed(pool, mark, work);
    assert.deepEqual(
      results,
      count(itemCount).map((item) => item * 2),
    );
  });

  test(`${way.name}: what a mapper throws in another worker names its item`, async (t) => {
    const mark = new Gate(t).mark('relayed');
    const pool = openPool(t, { size: 2 }, way.way);
    const work = async (): Promise<string> => {
      const here = place();
      const mapper = (item: number): number => {
        if (place() === here) return spinFor(1, item);
        writeFileSync(mark, '');
        throw new RangeError(`item ${item}`);
      };
      const map = pmap(count(itemCount), mapper, { chunk: 1 });
      return map.then(
        () => 'no failure',
        ({ name, message, itemIndex }) => `${name} ${message} ${message === `item ${itemIndex}`}`,
      );
    };
    const said = await untilRelayed(pool, mark, work);
    assert.match(said, /^RangeError item \d+ true$/);
  });

  test(`${way.name}: a result of another worker that cannot travel names its item`, async (t) => {
    const mark = new Gate(t).mark('relayed');
    const pool = openPool(t, { size: 2 }, way.way);
    const work = async (): Promise<unknown> => {
      const here = place();
      const mapper = (item: number): unknown => {
        if (place() === here) return spinFor(1, item);
        writeFileSync(mark, '');
        return new WeakMap();
      };
      return pmap(count(itemCount), mapper, { chunk: 1 }).then(
        () => 'no failure',
        ({ code, itemIndex }) => [code, typeof itemIndex],
      );
    };
    assert.deepEqual(await untilRelayed(pool, mark, work), ['TRANSFER_UNSUPPORTED', 'number']);
  });

  test(`${way.name}: an aborted map in a task aborts in the other worker, which lives on`, async (t) => {
    const gate = new Gate(t);
    const [mark, heard] = [gate.mark('relayed'), gate.mark('heard')];
    const pool = openPool(t, { size: 2, graceMs: 60_000 }, way.way);
    const work = async (): Promise<string> => {
      const here = place();
      const abort = new AbortController();
      const mapper = async (item: number): Promise<number> => {
        const { taskSignal } = await import('../../src/public.js');
        if (place() !== here) {
          writeFileSync(mark, '');
          await new Promise((resolve) => taskSignal()?.addEventListener('abort', resolve));
          writeFileSync(heard, '');
        }
        return spinFor(1, item);
      };
      const timer = setInterval(() => existsSync(mark) && abort.abort(), 1);
      const map = pmap(count(itemCount), mapper, { chunk: 1, signal: abort.signal });
      const outcome = await map.then(
        () => 'no failure',
        ({ code }) => code,
      );
      clearInterval(timer);
      return outcome;
    };
    assert.equal(await untilRelayed(pool, mark, work), 'ABORTED');
    await gate.reached('heard');
    assert.equal(await pool.run(() => 'next'), 'next');
    assert.equal(pool.stats().exitedWorkers, 0);
  });

  test(`${way.name}: a map in place inside a task gives each item once to a mapper`, async (t) => {
    const mark = new Gate(t).mark('relayed');
    const pool = openPool(t, { size: 2 }, way.way);
    const work = async (): Promise<number[]> => {
      const here = place();
      const items = new Float64Array(shared(itemCount * 8).buffer);
      for (const at of items.keys()) items[at] = at;
      const mapper = (item: number): number => {
        if (place() !== here) writeFileSync(mark, '');
        return spinFor(1, item + 1000);
      };
      return [...(await pmap(items, mapper, { chunk: 1, into: items }))];
    };
    const results = await untilRelayed(pool, mark, work);
    assert.deepEqual(
      results,
      count(itemCount).map((item) => item + 1000),
    );
  });
}

for (const way of processWays.filter(({ name }) => workerWays.some((each) => each.name === name))) {
  for (const retry of [0, 1]) {
    test(`${way.name}: another worker ends under items of a map in a task, retry ${retry}`, async (t) => {
      const gate = new Gate(t);
      const [mark, killed] = [gate.mark('relayed'), gate.mark('killed')];
      const pool = openPool(t, { size: 2 }, way);
      const work = async (): Promise<unknown> => {
        const here = place();
        const lostMapper = (item: number): number => {
          if (place() !== here && isFirst(killed)) {
            writeFileSync(mark, '');
            crash();
          }
          return spinFor(1, item);
        };
        return pmap(count(itemCount), lostMapper, { chunk: 1, retry }).catch(
          ({ code, message }) => `${code} ${message}`,
        );
      };
      const outcome = await untilRelayed(pool, mark, work);
      if (retry > 0) assert.deepEqual(outcome, count(itemCount));
      else
        assert.match(
          `${outcome}`,
          /^WORKER_EXITED .+ while it ran item \d+ of lostMapper; use retry/,
        );
    });
  }
}
