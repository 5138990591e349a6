import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RestartIntensity } from '../../../src/lib/index.js';

test('delays double with the failures of the period, and one too many gives up', () => {
  const intensity = new RestartIntensity({ max: 3, withinMs: 1000 });
  const delays = [0, 1, 2, 3].map((nowMs) => intensity.failed(nowMs));
  assert.deepEqual(delays, [50, 100, 200, undefined]);
  assert.equal(intensity.failures, 4);
});

test('failures before the period do not count', () => {
  const intensity = new RestartIntensity({ max: 1, withinMs: 1000 });
  assert.deepEqual(
    [0, 1000, 1999].map((nowMs) => intensity.failed(nowMs)),
    [50, 50, undefined],
  );
});

test('0 restarts give up at once, and Infinity never does', () => {
  assert.equal(new RestartIntensity({ max: 0, withinMs: 1000 }).failed(0), undefined);
  const endless = new RestartIntensity({ max: Infinity, withinMs: 1000 });
  for (let at = 0; at < 100; at += 1) assert.notEqual(endless.failed(at), undefined);
  assert.equal(endless.failed(100), 5000);
});
