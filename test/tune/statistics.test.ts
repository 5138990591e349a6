import assert from 'node:assert/strict';
import { test } from 'node:test';
import { signTestP, spread } from '../../src/tune/search/statistics.js';

test('spread is the middle half by the median', () => {
  assert.equal(spread([90, 95, 100, 105, 110]), 0.1);
  assert.equal(spread([5, 5, 5]), 0);
});

test('the sign test has the chances of coins', () => {
  assert.equal(signTestP(10, 10), 1 / 1024);
  assert.equal(signTestP(9, 10), 11 / 1024);
  assert.equal(signTestP(0, 10), 1);
  assert.equal(signTestP(0, 0), 1);
  assert.equal(signTestP(10, 12), 79 / 4096);
});
