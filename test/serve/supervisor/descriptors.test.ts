// Reports of processes without descriptors, on made-up rows.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { boardAt, createBoard, rowsOf } from '../../../src/serve/shared/board.js';
import { Descriptors } from '../../../src/serve/supervisor/descriptors.js';
import { announced } from '../served.js';

test('each shortage of a process is reported once, and once more when it is over', (t) => {
  const exhausted = announced(t, 'manycore:server:exhausted');
  const recovered = announced(t, 'manycore:server:recovered');
  const rows = rowsOf(createBoard(2, 2));
  const descriptors = new Descriptors({ rows, routersExhausted: () => 0 });
  const processes = [{ number: 0, pid: process.pid }, undefined];
  const row = rows[0]?.[1];
  let nowMs = 0;
  const seen = (tries: number): readonly number[] => {
    row?.add(boardAt.exhausted, tries);
    nowMs += 1000;
    descriptors.check(processes, nowMs);
    return [exhausted.length, recovered.length];
  };
  assert.deepEqual(seen(0), [0, 0]);
  assert.deepEqual(seen(20), [1, 0]);
  assert.deepEqual(seen(20), [1, 0]);
  assert.deepEqual(seen(0), [1, 0]);
  assert.deepEqual(seen(1), [1, 0], 'the same one, after a pause');
  row?.clear(); // its loop has ended
  for (const expected of [0, 0, 1, 1]) assert.deepEqual(seen(0), [1, expected]);
  assert.deepEqual(seen(1), [2, 1]);
  const { pid, limit } = exhausted[0] ?? {};
  assert.equal(pid, process.pid);
  if (process.platform === 'linux') assert.ok(Number(limit) > 0, String(limit));
  assert.deepEqual(recovered, [{ pid: process.pid, exhaustedMs: 3000 }]);
  processes[0] = { number: 0, pid: 1 }; // another one takes its number
  assert.deepEqual(seen(5), [3, 1]);
});

test('the routers of this process are reported once, by whichever supervisor is first', (t) => {
  const exhausted = announced(t, 'manycore:server:exhausted');
  const counts = { rows: [], routersExhausted: () => 7 };
  const [one, other] = [new Descriptors(counts), new Descriptors(counts)];
  one.check([], 1000);
  other.check([], 1500);
  one.check([], 2000);
  assert.deepEqual(
    exhausted.map(({ pid }) => pid),
    [process.pid],
  );
});
