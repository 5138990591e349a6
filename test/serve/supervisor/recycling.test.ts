// Recycling of processes after connections, or above a memory limit, on made-up rows.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { boardAt, Row } from '../../../src/serve/shared/board.js';
import { Recycling } from '../../../src/serve/supervisor/recycling.js';

function rowWith(placed: number): Row {
  const row = new Row(new ArrayBuffer(boardAt.headerBytes + boardAt.rowBytes), 0, 0);
  row.set(boardAt.placed, placed);
  return row;
}

const ready = () => ({ state: 'ready', pid: process.pid }) as const;

/** The first number of connections at which a process is recycled. */
function maxOf(recycling: Recycling): number {
  const one = ready();
  let count = 0;
  while (!recycling.shouldRecycle(one, [rowWith(count)])) count += 1;
  return count;
}

test('processes that begin together are not recycled together, and none a tenth too early or late', () => {
  fc.assert(
    fc.property(fc.integer({ min: 100, max: 500 }), (maxConnectionsPerProcess) => {
      const recycling = new Recycling({ maxConnectionsPerProcess, maxRssBytes: Infinity });
      const limits = Array.from({ length: 20 }, () => maxOf(recycling));
      assert.ok(new Set(limits).size > 1);
      for (const limit of limits) {
        assert.ok(
          Math.abs(limit - 1 - maxConnectionsPerProcess) <= maxConnectionsPerProcess * 0.1 + 1,
        );
      }
    }),
    { numRuns: 20 },
  );
});

test('the connections of all loops count, and only ready processes are recycled', () => {
  const recycling = new Recycling({ maxConnectionsPerProcess: 100, maxRssBytes: Infinity });
  assert.ok(recycling.shouldRecycle(ready(), [rowWith(60), rowWith(60)]));
  assert.ok(!recycling.shouldRecycle(ready(), [rowWith(40), rowWith(40)]));
  assert.ok(!recycling.shouldRecycle({ state: 'draining', pid: process.pid }, [rowWith(1000)]));
});

test('memory counts only where it is limited', () => {
  const limited = new Recycling({ maxConnectionsPerProcess: Infinity, maxRssBytes: 1 });
  const free = new Recycling({ maxConnectionsPerProcess: Infinity, maxRssBytes: Infinity });
  assert.ok(limited.shouldRecycle(ready(), []));
  assert.ok(!free.shouldRecycle(ready(), []));
});
