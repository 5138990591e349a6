import assert from 'node:assert/strict';
import { test } from 'node:test';
import { extrapolatedCounts, workerCounts } from '../../../bench/report/scaling/plan.js';

test('up to eight cores every number of workers is measured', () => {
  assert.deepEqual(workerCounts(1), [1]);
  assert.deepEqual(workerCounts(8), [1, 2, 3, 4, 5, 6, 7, 8]);
});

test('beyond, a few to each doubling, and all cores last', () => {
  assert.deepEqual(workerCounts(9), [1, 2, 4, 8, 9]);
  assert.deepEqual(workerCounts(16), [1, 2, 4, 8, 12, 16]);
  assert.deepEqual(workerCounts(72), [1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 72]);
  for (let cores = 1; cores <= 600; cores++) {
    const counts = workerCounts(cores);
    assert.equal(counts.at(-1), cores);
    assert.deepEqual(
      counts,
      [...new Set(counts)].sort((a, b) => a - b),
    );
  }
});

test('the laws are asked about doublings of what was measured, none that was measured', () => {
  assert.deepEqual(extrapolatedCounts(2), [4, 8, 16]);
  assert.deepEqual(extrapolatedCounts(8), [16, 32]);
  assert.deepEqual(extrapolatedCounts(72), [144, 288]);
});
