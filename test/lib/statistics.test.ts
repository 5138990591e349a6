import assert from 'node:assert/strict';
import { test } from 'node:test';
import { median, quantile } from '../../src/lib/index.js';

test('a median lies between the two values in the middle, and there is none of nothing', () => {
  assert.equal(median([3, 1, 2]), 2);
  assert.equal(median([4, 1, 2, 3]), 2.5);
  assert.ok(Number.isNaN(median([])));
});

test('a quantile is in proportion between its neighbours', () => {
  assert.equal(quantile([0, 10, 20, 30, 40], 0.25), 10);
  assert.equal(quantile([0, 10], 0.25), 2.5);
  assert.equal(quantile([7], 0.99), 7);
});
