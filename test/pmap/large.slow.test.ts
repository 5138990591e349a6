// Items and results that are larger than what a ring or a slab holds, and many of them.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pmap } from '../../src/public.js';
import { deadlineMs } from '../pool/calls/ways.js';
import { withDeadline } from '../support/index.js';
import { count, via, workerWays } from './ways.js';

const mib = 2 ** 20;

/** Samples of a large buffer: copying it for the comparison would cost more than the map. */
function ends(bytes: Uint8Array): (number | undefined)[] {
  return [bytes.length, bytes[0], bytes[bytes.length >> 1], bytes[bytes.length - 1]];
}

for (const way of workerWays) {
  test(`${way.name}: results of 64 MiB each come back whole, in order`, async () => {
    const map = pmap([1, 2, 3], (item) => Buffer.alloc(64 * mib, item), { ...via(way), chunk: 2 });
    const results = await withDeadline(map, 2 * deadlineMs, 'the map');
    assert.deepEqual(
      results.map(ends),
      [1, 2, 3].map((item) => [64 * mib, item, item, item]),
    );
  });

  test(`${way.name}: items of 64 MiB each arrive whole`, async () => {
    const items = [4, 5, 6].map((item) => Buffer.alloc(64 * mib, item));
    const map = pmap(items, (item) => ends(item), via(way));
    assert.deepEqual(
      await withDeadline(map, 2 * deadlineMs, 'the map'),
      [4, 5, 6].map((item) => [64 * mib, item, item, item]),
    );
  });

  test(`${way.name}: a chunk whose results together are larger than any slab comes back whole`, async () => {
    const map = pmap(count(40), (item) => new Uint8Array(2 * mib).fill(item), {
      ...via(way),
      chunk: 40,
    });
    const results = await withDeadline(map, 2 * deadlineMs, 'the map');
    assert.deepEqual(
      results.map(ends),
      count(40).map((item) => [2 * mib, item, item, item]),
    );
  });

  test(`${way.name}: texts of 16 MiB each come back whole, and as outcomes`, async () => {
    const make = (item: number): string => `${item}`.repeat(16 * mib);
    const outcomes = await pmap([1, 2], make, { ...via(way), settled: true });
    assert.deepEqual(
      outcomes.map((each) => each.status === 'fulfilled' && [each.value.length, each.value[mib]]),
      [
        [16 * mib, '1'],
        [16 * mib, '2'],
      ],
    );
  });

  test(`${way.name}: 20,000 results of 1 KiB each come back in order`, async () => {
    const map = pmap(count(20_000), (item) => `${item} `.padEnd(1024, '.'), via(way));
    const results = await withDeadline(map, 2 * deadlineMs, 'the map');
    assert.equal(
      results.findIndex((result, at) => result.length !== 1024 || !result.startsWith(`${at} `)),
      -1,
    );
  });

  test(`${way.name}: a stream of large results holds as many as its lead, and all come`, async () => {
    let read = 0;
    function* items(): Generator<number> {
      for (read = 1; read <= 12; read += 1) yield read;
    }
    let taken = 0;
    const make = (item: number): Buffer => Buffer.alloc(4 * mib, item);
    for await (const result of pmap.stream(items(), make, { ...via(way), lead: 3 })) {
      taken += 1;
      assert.deepEqual(ends(result), [4 * mib, taken, taken, taken]);
      assert.ok(read <= taken + 3);
    }
    assert.equal(taken, 12);
  });

  test(`${way.name}: large pieces of a typed array are filtered and reduced`, async () => {
    const items = new Float64Array(mib).map((_, at) => at % 1000);
    const kept = await pmap.filter(items, (item) => item === 999, { ...via(way), chunk: mib / 4 });
    assert.equal(kept.length, Math.floor(mib / 1000));
    const sum = (left: number, right: number): number => left + right;
    const total = await pmap.reduce(items, (item) => item, sum, 0, { ...via(way), chunk: mib / 4 });
    assert.equal(total, items.reduce(sum, 0));
  });
}
