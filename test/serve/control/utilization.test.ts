// Utilization of loops, on made-up rows.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { boardAt, Row } from '../../../src/serve/shared/board.js';
import { Utilization } from '../../../src/serve/supervisor/utilization.js';

function readyRow(): Row {
  const row = new Row(new ArrayBuffer(boardAt.headerBytes + boardAt.rowBytes), 0, 0);
  row.state = 'ready';
  return row;
}

test('a loop was busy for as long as it did not sleep', () => {
  const row = readyRow();
  const utilization = new Utilization();
  utilization.sample([row], 5000);
  assert.equal(utilization.of(row), undefined);
  row.set(boardAt.idleMs, 250);
  utilization.sample([row], 6000);
  assert.equal(utilization.of(row), 0.75);
  utilization.sample([row], 7000);
  assert.equal(utilization.of(row), 1);
});

test('work of a loop before it is ready does not count', () => {
  const row = readyRow();
  row.state = 'starting';
  const utilization = new Utilization();
  utilization.sample([row], 1000);
  row.state = 'ready';
  utilization.sample([row], 2000);
  assert.equal(utilization.of(row), undefined);
  utilization.sample([row], 3000);
  assert.equal(utilization.of(row), 1);
});

test('loops are saturated when all sampled ones are busy', () => {
  const rows = [readyRow(), readyRow()];
  const utilization = new Utilization();
  assert.ok(!utilization.isSaturated(rows));
  utilization.sample(rows.slice(0, 1), 1000);
  utilization.sample(rows, 2000); // the second is new
  assert.ok(utilization.isSaturated(rows));
  assert.equal(utilization.sum(rows), 1);
  rows[1]?.set(boardAt.idleMs, 500);
  utilization.sample(rows, 3000);
  assert.ok(!utilization.isSaturated(rows));
  assert.equal(utilization.sum(rows), 1.5);
});

test('the clock of a loop may come round, and one of another loop is no share at all', () => {
  const row = readyRow();
  const utilization = new Utilization();
  row.set(boardAt.idleMs, 2 ** 32 - 100);
  utilization.sample([row], 1000);
  row.set(boardAt.idleMs, 300);
  utilization.sample([row], 2000);
  assert.equal(utilization.of(row), 0.6);
  row.set(boardAt.idleMs, 200);
  utilization.sample([row], 3000);
  assert.equal(utilization.of(row), 0);
});
