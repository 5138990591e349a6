import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openPool, ways } from '../pool/calls/ways.js';
import { waitFor } from '../support/index.js';

const mib = 2 ** 20;
const limitBytes = 96 * mib;

for (const way of ways.filter(({ worker }) => worker === 'thread')) {
  test(`${way.name}: a worker is not replaced for what other threads hold`, async (t) => {
    const held = Buffer.alloc(limitBytes, 1);
    const pool = openPool(t, { size: 1, maxRssBytes: limitBytes }, way);
    // A worker checks its memory after a task, at most once in 200 ms.
    const sinceMs = performance.now();
    await waitFor(async () => {
      await pool.run(() => 0);
      return performance.now() - sinceMs > 1000;
    });
    assert.equal(pool.stats().startedWorkers, 1);
    assert.ok(process.memoryUsage.rss() > limitBytes && held.length === limitBytes);
  });

  for (const [where, hold] of [
    ['on its heap', () => Array.from({ length: 16 * mib }, (_, index) => index / 2)],
    ['in buffers', () => Buffer.alloc(96 * mib, 1)],
  ] as const) {
    test(`${way.name}: a worker is replaced for what it holds itself ${where}`, async (t) => {
      const pool = openPool(t, { size: 1, maxRssBytes: limitBytes }, way);
      await pool.run((make) => {
        Reflect.set(globalThis, 'held', make());
      }, hold);
      await waitFor(async () => {
        await pool.run(() => 0);
        return pool.stats().startedWorkers > 1;
      });
      assert.equal(pool.stats().failedTasks, 0);
    });
  }
}
