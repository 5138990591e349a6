// Detection of blocked loops and stopped processes, on made-up rows.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { boardAt, Row } from '../../../src/serve/shared/board.js';
import {
  blockedLoops,
  isFull,
  silentMs,
  stoppedMs,
} from '../../../src/serve/supervisor/blocked-loops.js';

function row(words: Partial<Record<keyof typeof boardAt, number>>): Row {
  const made = new Row(new ArrayBuffer(boardAt.headerBytes + boardAt.rowBytes), 0, 0);
  made.state = 'ready';
  for (const [name, value] of Object.entries(words)) {
    if (name in boardAt) made.set(boardAt[name as keyof typeof boardAt], value);
  }
  return made;
}

test('a loop is silent since the older of an untaken connection and an unanswered question', () => {
  assert.equal(silentMs(row({}), 1000), 0);
  assert.equal(silentMs(row({ untakenSince: 900 }), 1000), 100);
  assert.equal(silentMs(row({ untakenSince: 900, pingedSince: 400 }), 1000), 600);
});

test('the clock may come round, and a time that lies ahead is now', () => {
  assert.equal(silentMs(row({ pingedSince: 2 ** 32 - 10 }), 5), 15);
  assert.equal(silentMs(row({ pingedSince: 1001 }), 1000), 0);
});

test('a process is stopped since the last write of its listener thread, or since it serves', () => {
  assert.equal(
    stoppedMs([row({ idleWrittenAt: 700 }), row({ idleWrittenAt: 900 })], 1000, 5000),
    100,
  );
  assert.equal(stoppedMs([row({})], 1000, 5000), 5000);
  assert.equal(stoppedMs([], 1000, 5000), 0);
  assert.equal(stoppedMs([row({ idleWrittenAt: 1 })], 1000, 5000), 999);
});

test('loops are full when all hold as many connections as they may', () => {
  assert.ok(isFull([row({ open: 5, limit: 5 }), row({ open: 6, limit: 5 })]));
  assert.ok(!isFull([row({ open: 5, limit: 5 }), row({ open: 4, limit: 5 })]));
  assert.ok(!isFull([]));
  assert.ok(isFull([row({ open: 1, limit: 5, filesOpen: 9 }), row({ limit: 5 })]));
});

test('only ready loops are blocked, each with its position and time', () => {
  const draining = row({ pingedSince: 1 });
  draining.state = 'draining';
  const rows = [
    [row({}), row({ pingedSince: 4000 })],
    [draining, row({ untakenSince: 9000 })],
  ];
  assert.deepEqual(blockedLoops(rows, 10_000, 5000), [{ process: 0, index: 1, blockedMs: 6000 }]);
});
