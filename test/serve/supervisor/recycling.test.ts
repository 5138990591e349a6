// Recycling of processes after connections or requests, at an age, or above a memory limit, on made-up rows.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { boardAt, Row } from '../../../src/serve/shared/board.js';
import { Recycling } from '../../../src/serve/supervisor/recycling.js';

const never = {
  maxConnectionsPerProcess: Infinity,
  maxRequestsPerProcess: Infinity,
  maxAgeMs: Infinity,
  maxRssBytes: Infinity,
};

/** Words that grow until a process is recycled, by the option that limits them. */
const growing = {
  maxConnectionsPerProcess: boardAt.placed,
  maxRequestsPerProcess: boardAt.requests,
  maxAgeMs: undefined,
} as const;

function rowWith(word: number, count: number): Row {
  const row = new Row(new ArrayBuffer(boardAt.headerBytes + boardAt.rowBytes), 0, 0);
  row.set(word, count);
  return row;
}

const ready = () => ({ state: 'ready' as const, pid: process.pid, ageMs: 0 });

for (const [option, word] of Object.entries(growing)) {
  /** The first count at which a process is recycled. */
  const limitOf = (recycling: Recycling): number => {
    const one = ready();
    let count = 0;
    const isDue = (): boolean => {
      if (word !== undefined) return recycling.shouldRecycle(one, [rowWith(word, count)]);
      return recycling.shouldRecycle(Object.assign(one, { ageMs: count }), []);
    };
    while (!isDue()) count += 1;
    return count;
  };

  test(`${option}: processes that begin together end apart, none later or a tenth too early`, () => {
    fc.assert(
      fc.property(fc.integer({ min: 100, max: 500 }), (max) => {
        const recycling = new Recycling({ ...never, [option]: max });
        const limits = Array.from({ length: 20 }, () => limitOf(recycling));
        assert.ok(new Set(limits).size > 1);
        for (const limit of limits) assert.ok(limit <= max && limit >= max * 0.9, `${limit}`);
      }),
      { numRuns: 20 },
    );
  });
}

test('connections and requests of all loops count, and only ready processes are recycled', () => {
  for (const [option, word] of [
    ['maxConnectionsPerProcess', boardAt.placed],
    ['maxRequestsPerProcess', boardAt.requests],
    ['maxRequestsPerProcess', boardAt.filesSent],
  ] as const) {
    const recycling = new Recycling({ ...never, [option]: 100 });
    assert.ok(recycling.shouldRecycle(ready(), [rowWith(word, 60), rowWith(word, 60)]));
    assert.ok(!recycling.shouldRecycle(ready(), [rowWith(word, 40), rowWith(word, 40)]));
    const draining = { ...ready(), state: 'draining' as const };
    assert.ok(!recycling.shouldRecycle(draining, [rowWith(word, 1000)]));
  }
});

test('each limit counts only where it is given', () => {
  const limited = new Recycling({ ...never, maxRssBytes: 1 });
  assert.ok(limited.shouldRecycle(ready(), []));
  const old = { ...ready(), ageMs: 1e12 };
  const busy = [rowWith(boardAt.placed, 1e9), rowWith(boardAt.requests, 1e9)];
  assert.ok(!new Recycling(never).shouldRecycle(old, busy));
});
