import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Estimate, learn } from '../../src/pool/task.js';

function estimateAfter(...runsMs: number[]): number | undefined {
  const estimate: Estimate = { runMs: undefined, wasOutlier: false };
  for (const ranMs of runsMs) learn(estimate, ranMs);
  return estimate.runMs;
}

test('the first run is believed', () => assert.equal(estimateAfter(3), 3));

test('a single run that is far above the rest changes nothing', () => {
  assert.equal(estimateAfter(0.001, 0.001, 5), 0.001);
});

test('a second slow run in a row is believed, and at once for half', () => {
  assert.ok((estimateAfter(0.001, 5, 5) ?? 0) > 2.5);
});

test('slow runs that are apart from each other change nothing', () => {
  assert.equal(estimateAfter(1, 50, 1, 50, 1), 1);
});

test('a somewhat longer run counts for half, a shorter one for a fifth', () => {
  assert.equal(estimateAfter(2, 4), 3);
  assert.equal(estimateAfter(5, 0), 4);
});
