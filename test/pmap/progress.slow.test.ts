// Calls of `onProgress`.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type MapProgress, pmap } from '../../src/public.js';
import { spinMs } from '../pool/tasks.js';
import { count, mapWays, turns, via } from './ways.js';

/** A list that `onProgress` fills. */
function listen(): { told: MapProgress[]; onProgress: (progress: MapProgress) => void } {
  const told: MapProgress[] = [];
  return { told, onProgress: (progress) => void told.push(progress) };
}

for (const way of mapWays) {
  test(`${way.name}: progress is reported while a map runs, and at its end all items are done`, async () => {
    const { told, onProgress } = listen();
    await pmap(count(60), () => spinMs(8), { ...via(way), onProgress });
    assert.ok(
      told.some(({ doneItems }) => doneItems > 0 && doneItems < 60),
      JSON.stringify(told),
    );
    const done = told.map(({ doneItems }) => doneItems);
    assert.deepEqual(
      done,
      done.toSorted((a, b) => a - b),
    );
    assert.deepEqual(told.at(-1), { doneItems: 60, totalItems: 60 });
    assert.ok(told.every(({ totalItems }) => totalItems === 60));
  });

  test(`${way.name}: many short items are not reported one by one`, async () => {
    const { told, onProgress } = listen();
    const map = pmap(count(500), (item) => item, { ...via(way), onProgress, chunk: 1 });
    await map;
    // At most once in a while, however many chunks are answered, and once at the end.
    assert.ok(told.length <= 2 + map.stats().elapsedMs / 40, `${told.length} times`);
  });

  test(`${way.name}: the end of an empty map is reported`, async () => {
    const { told, onProgress } = listen();
    await pmap([], () => 1, { ...via(way), onProgress });
    assert.deepEqual(told, [{ doneItems: 0, totalItems: 0 }]);
  });

  test(`${way.name}: holes are no items that are still to come`, async () => {
    const { told, onProgress } = listen();
    const sparse = new Array<number>(9);
    sparse[1] = 1;
    sparse[5] = 5;
    await pmap(sparse, (item) => item, { ...via(way), onProgress });
    assert.deepEqual(told.at(-1), { doneItems: 2, totalItems: 2 });
  });

  test(`${way.name}: the total of a generator is unknown`, async () => {
    const { told, onProgress } = listen();
    await pmap(count(10).values(), (item) => item, { ...via(way), onProgress });
    assert.deepEqual(told.at(-1), { doneItems: 10, totalItems: undefined });
  });

  test(`${way.name}: failed items are done with settled`, async () => {
    const { told, onProgress } = listen();
    const fail = (item: number): never => {
      throw new Error(`${item}`);
    };
    await pmap(count(10), fail, { ...via(way), onProgress, settled: true });
    assert.deepEqual(told.at(-1), { doneItems: 10, totalItems: 10 });
  });

  test(`${way.name}: filters, reductions, pairs and streams report their end too`, async () => {
    const { told, onProgress } = listen();
    const options = { ...via(way), onProgress, chunk: 2 };
    await pmap.filter(count(5), () => true, options);
    assert.deepEqual(told.at(-1), { doneItems: 5, totalItems: 5 });
    await pmap.reduce(
      count(6),
      (item) => item,
      (left, right) => left + right,
      0,
      options,
    );
    assert.deepEqual(told.at(-1), { doneItems: 6, totalItems: 6 });
    await pmap.pairs(count(4), () => 1, options);
    assert.deepEqual(told.at(-1), { doneItems: 6, totalItems: 6 });
    for await (const _ of pmap.stream(count(7), () => 1, options));
    assert.deepEqual(told.at(-1), { doneItems: 7, totalItems: 7 });
  });

  test(`${way.name}: a map that failed or was aborted does not report that it is done`, async () => {
    const { told, onProgress } = listen();
    const fail = (item: number): number => {
      if (item === 5) throw new Error('five');
      return item;
    };
    await assert.rejects(pmap(count(10), fail, { ...via(way), onProgress, chunk: 1 }));
    const signal = AbortSignal.abort();
    await assert.rejects(pmap(count(10), fail, { ...via(way), onProgress, signal }));
    await turns(5);
    assert.ok(told.every(({ doneItems }) => doneItems < 10));
  });

  for (const [when, throwsAt] of [
    ['at first', 1],
    ['at the end', 40],
  ] as const) {
    test(`${way.name}: an onProgress that throws ${when} rejects the map with that error, and closes its source`, async () => {
      let closed = 0;
      function* items(): Generator<number> {
        try {
          yield* count(40);
          if (throwsAt < 40) yield* count(1_000_000);
        } finally {
          closed += 1;
        }
      }
      const thrown = new RangeError('told too much');
      const map = pmap(items(), (item) => item, {
        ...via(way),
        onProgress({ doneItems }) {
          if (doneItems >= throwsAt) throw thrown;
        },
      });
      assert.equal(await map.catch((error: unknown) => error), thrown);
      assert.equal(closed, 1);
      assert.deepEqual(await pmap([1], (item) => item, via(way)), [1]);
    });
  }

  test(`${way.name}: an onProgress that aborts its map ends it`, async () => {
    const abort = new AbortController();
    const map = pmap(count(1000), (item) => item, {
      ...via(way),
      signal: abort.signal,
      onProgress: () => abort.abort(),
    });
    await assert.rejects(map, { code: 'ABORTED' });
  });
}
