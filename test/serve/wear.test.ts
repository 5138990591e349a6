// Which processes are replaced because of what they did, told from made-up rows.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { boardAt, Row } from '../../src/serve/board.js';
import { Wear } from '../../src/serve/wear.js';

function rowWith(placed: number): Row {
  const row = new Row(new ArrayBuffer(boardAt.headerBytes + boardAt.rowBytes), 0, 0);
  row.set(boardAt.placed, placed);
  return row;
}

const ready = () => ({ state: 'ready', pid: process.pid }) as const;

/** The connections with which a process is worn first. */
function mostOf(wear: Wear): number {
  const one = ready();
  let count = 0;
  while (!wear.isWorn(one, [rowWith(count)])) count += 1;
  return count;
}

test('processes that begin together are not worn together, and none a tenth too early or late', () => {
  fc.assert(
    fc.property(fc.integer({ min: 100, max: 500 }), (maxConnectionsPerWorker) => {
      const wear = new Wear({ maxConnectionsPerWorker, maxRssBytes: Infinity });
      const mosts = Array.from({ length: 20 }, () => mostOf(wear));
      assert.ok(new Set(mosts).size > 1);
      for (const most of mosts) {
        assert.ok(
          Math.abs(most - 1 - maxConnectionsPerWorker) <= maxConnectionsPerWorker * 0.1 + 1,
        );
      }
    }),
    { numRuns: 20 },
  );
});

test('the connections of all loops count, and what is no longer ready is not worn', () => {
  const wear = new Wear({ maxConnectionsPerWorker: 100, maxRssBytes: Infinity });
  assert.ok(wear.isWorn(ready(), [rowWith(60), rowWith(60)]));
  assert.ok(!wear.isWorn(ready(), [rowWith(40), rowWith(40)]));
  assert.ok(!wear.isWorn({ state: 'draining', pid: process.pid }, [rowWith(1000)]));
});

test('memory counts only where it is limited', () => {
  const limited = new Wear({ maxConnectionsPerWorker: Infinity, maxRssBytes: 1 });
  const free = new Wear({ maxConnectionsPerWorker: Infinity, maxRssBytes: Infinity });
  assert.ok(limited.isWorn(ready(), []));
  assert.ok(!free.isWorn(ready(), []));
});
