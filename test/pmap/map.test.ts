// Results and items of a map: the order of results, the number of items that travel together, the arguments
// of the mapper.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pmap } from '../../src/public.js';
import { deadlineMs, Gate, openPool } from '../pool/calls/ways.js';
import { blockUntil, crowd, currentTenant, spinMs, tenants } from '../pool/tasks.js';
import { random, waitFor, withDeadline } from '../support/index.js';
import { countHere, spinFor } from './mappers.js';
import { count, type MapWay, mapWays, turns, via, workerWays } from './ways.js';

/** Takes from some ns to some µs, in no order: different for each item and seed. */
function workOf(item: number, seed: number): number {
  const chance = Math.imul(item ^ seed, 0x9e3779b1) >>> 0;
  let rounds = chance % 1000 === 0 ? 100_000 : chance % 64;
  while (rounds > 0) rounds -= 1;
  return item;
}

for (const way of mapWays) {
  test(`${way.name}: the results of 100,000 items that take random times are in their order`, async (t) => {
    const { seed } = random(t);
    const items = count(100_000);
    const results = await pmap(items, (item) => workOf(item, seed), via(way));
    assert.deepEqual(results, items);
  });

  test(`${way.name}: results as they come are all there, each once`, async (t) => {
    const { seed } = random(t);
    const items = count(5000);
    const results = await pmap(items, (item) => workOf(item, seed), {
      ...via(way),
      ordered: false,
    });
    assert.deepEqual(
      results.sort((a, b) => a - b),
      items,
    );
  });

  for (const [chunk, chunks] of [
    [1, 95],
    [10, 10],
    [94, 2],
    [95, 1],
    [2 ** 31 - 1, 1],
  ] as const) {
    test(`${way.name}: with chunk ${chunk} 95 items go in ${chunks} chunks`, async () => {
      const map = pmap(count(95), (item) => item + 1, { ...via(way), chunk });
      assert.deepEqual(
        await map,
        count(95).map((item) => item + 1),
      );
      assert.equal(map.stats().chunks, chunks);
    });
  }

  test(`${way.name}: tiny items do not cost a message each`, async () => {
    const map = pmap(count(100_000), (item) => item, via(way));
    await map;
    assert.ok(map.stats().chunks <= 5000, `${map.stats().chunks} chunks`);
  });

  test(`${way.name}: tiny items of a generator do not cost a message each`, async () => {
    const map = pmap(count(100_000).values(), (item) => item, via(way));
    await map;
    assert.ok(map.stats().chunks <= 5000, `${map.stats().chunks} chunks`);
  });

  test(`${way.name}: items that take long go one by one`, async () => {
    const map = pmap(count(12), (item) => spinFor(25, item), via(way)); // longer than a chunk
    assert.deepEqual(await map, count(12));
    assert.equal(map.stats().chunks, 12);
  });

  test(`${way.name}: what a mapper promises is awaited, also where only some items are promised`, async () => {
    const later = async (item: number): Promise<number> => {
      await new Promise((turn) => setImmediate(turn));
      return item * 2;
    };
    const doubled = count(200).map((item) => item * 2);
    assert.deepEqual(await pmap(count(200), later, via(way)), doubled);
    const some = (item: number) => (item % 3 === 0 ? later(item) : item * 2);
    assert.deepEqual(await pmap(count(200), some, via(way)), doubled);
  });

  test(`${way.name}: anything with a then() is awaited`, async () => {
    const map = pmap(
      [1, 2, 3],
      // biome-ignore lint/suspicious/noThenProperty: the point of the test
      (item) => ({ then: (resolve: (value: number) => void) => resolve(item * 3) }),
      { ...via(way), chunk: 3 },
    );
    assert.deepEqual(await map, [3, 6, 9]);
  });

  test(`${way.name}: the items of a chunk run one after the other, async ones too`, async () => {
    const most = await pmap(count(30), () => crowd(), { ...via(way), chunk: 10 });
    assert.deepEqual(most, new Array(30).fill(1));
  });

  test(`${way.name}: the mapper gets the item and its index, and nothing else`, async () => {
    const map = pmap(['a', 'b'], (...args: unknown[]) => args, via(way));
    assert.deepEqual(await map, [
      ['a', 0],
      ['b', 1],
    ]);
  });

  test(`${way.name}: a mapper runs with the storages of the place where the map was called`, async () => {
    const ask = (): Promise<unknown[]> =>
      pmap(count(5), () => currentTenant(), { ...via(way), chunk: 1 });
    const both = [tenants.run('north', ask), tenants.run('south', ask), ask()];
    assert.deepEqual(await Promise.all(both), [
      new Array(5).fill('north'),
      new Array(5).fill('south'),
      new Array(5).fill(undefined),
    ]);
  });

  test(`${way.name}: maps at the same time have each their own results`, async () => {
    const maps = count(20).map((factor) =>
      pmap(count(300), (item) => item * factor, { ...via(way), chunk: 7 }),
    );
    const results = await Promise.all(maps);
    for (const [factor, result] of results.entries()) {
      assert.deepEqual(
        result,
        count(300).map((item) => item * factor),
      );
    }
  });

  test(`${way.name}: stats() of a map are those of the moment, and at its end of the whole`, async (t) => {
    const gate = new Gate(t);
    const { file } = gate;
    const mapper = async (item: number): Promise<number> => {
      const { existsSync } = await import('node:fs');
      while (item === 10 && !existsSync(file)) await new Promise((turn) => setTimeout(turn, 1));
      return spinFor(1, item);
    };
    const map = pmap(count(50), mapper, { ...via(way), chunk: 1 });
    await waitFor(() => map.stats().chunks > 2, deadlineMs, 'three chunks are through');
    const during = map.stats();
    assert.ok(during.doneItems > 2 && during.doneItems < 50);
    assert.equal(during.totalItems, 50);
    gate.open();
    await map;
    const after = map.stats();
    assert.deepEqual([after.doneItems, after.totalItems, after.chunks], [50, 50, 50]);
    assert.equal(after.channel, way.way?.channel ?? 'inline');
    assert.equal(after.workers, way.way === undefined ? 1 : 2);
    assert.ok(after.why.length > 0);
    assert.ok((after.itemMs ?? 0) >= 1 && after.ranMs >= 50 && after.elapsedMs > 0);
    await turns(3);
    assert.deepEqual(map.stats(), after);
  });

  test(`${way.name}: a map over a generator does not say how many items there are`, async () => {
    const map = pmap(count(5).values(), (item) => item, via(way));
    await map;
    assert.deepEqual([map.stats().totalItems, map.stats().doneItems], [undefined, 5]);
  });
}

/** A map whose first item stays at work until the gate opens; one item a chunk. */
function withFirstHeld(gate: Gate, items: number) {
  const [file, mark] = [gate.file, gate.mark('held')];
  return {
    items: count(items),
    hold: (item: number) => (item === 0 ? blockUntil(file, mark, 0) : item),
  };
}

function ownPool(t: Parameters<typeof openPool>[0], way: MapWay) {
  return { pool: openPool(t, { size: 2 }, way.way) };
}

for (const way of workerWays) {
  test(`${way.name}: first come, first served: what is held at work comes last`, async (t) => {
    const gate = new Gate(t);
    const { items, hold } = withFirstHeld(gate, 12);
    const map = pmap(items, hold, { ...ownPool(t, way), ordered: false, chunk: 1 });
    await waitFor(() => map.stats().doneItems === 11, deadlineMs, 'all others are through');
    gate.open();
    assert.equal((await map).at(-1), 0);
  });

  test(`${way.name}: in order what is held at work comes first all the same`, async (t) => {
    const gate = new Gate(t);
    const { items, hold } = withFirstHeld(gate, 12);
    const map = pmap(items, hold, { ...ownPool(t, way), chunk: 1 });
    await waitFor(() => map.stats().doneItems === 11, deadlineMs, 'all others are through');
    gate.open();
    assert.deepEqual(await map, items);
  });

  test(`${way.name}: a mapper sees a variable as it was at the call`, async () => {
    let factor = 2;
    const scale = { by: 10 };
    const map = pmap(count(100), (item) => item * factor * scale.by, { ...via(way), chunk: 1 });
    factor = 3;
    scale.by = 100;
    const results = await map;
    assert.deepEqual(
      results,
      count(100).map((item) => item * 20),
    );
    assert.equal(factor * scale.by, 300);
  });

  test(`${way.name}: what a mapper counts in a variable stays in its worker, for all of the map`, async (t) => {
    let calls = 0;
    const map = pmap(
      count(50),
      () => {
        calls += 1;
        return calls;
      },
      { pool: openPool(t, { size: 1 }, way.way), chunk: 1 },
    );
    assert.deepEqual(
      await map,
      count(50).map((item) => item + 1),
    );
    assert.equal(calls, 0);
  });
}

test('a map of higher priority runs before one that waits', async (t) => {
  const pool = openPool(t, { size: 1 });
  const gate = new Gate(t);
  const [file, mark] = [gate.file, gate.mark('blocker')];
  const blocker = pool.run(() => blockUntil(file, mark, 0));
  await gate.reached('blocker');
  const ask = (priority: number): Promise<number[]> =>
    pmap([0], () => countHere('by priority'), { pool, priority });
  const [low, high, middle] = [ask(-1), ask(5), ask(0)];
  gate.open();
  assert.deepEqual(await Promise.all([low, high, middle]), [[3], [1], [2]]);
  await blocker;
});

test('a long map leaves calls of its pool their turn', async (t) => {
  const pool = openPool(t, { size: 1 });
  let isOver = false;
  const map = pmap(count(200), () => spinMs(2), { pool });
  const ended = map.then(() => {
    isOver = true;
  });
  await waitFor(() => map.stats().chunks > 0, deadlineMs, 'the map is at work');
  assert.equal(await pool.run(() => 'a call'), 'a call');
  assert.equal(isOver, false);
  await withDeadline(ended, deadlineMs, 'the map');
});
