import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RestartPolicy, restartDefaults } from '../../../src/lib/index.js';

test('delays double from failure to failure, up to the longest', () => {
  const policy = new RestartPolicy({ firstDelayMs: 10, maxDelayMs: 50, maxFailures: 9 });
  const delays = Array.from({ length: 5 }, () => policy.failed());
  assert.deepEqual(delays, [10, 20, 40, 50, 50]);
});

test('the last failure that is allowed gives up', () => {
  const policy = new RestartPolicy({ firstDelayMs: 10, maxDelayMs: 50, maxFailures: 3 });
  assert.deepEqual([policy.failed(), policy.failed(), policy.failed()], [10, 20, undefined]);
  assert.equal(policy.failuresInRow, 3);
});

test('a start that worked begins the row anew', () => {
  const policy = new RestartPolicy();
  policy.failed();
  policy.failed();
  policy.succeeded();
  assert.equal(policy.failuresInRow, 0);
  assert.equal(policy.failed(), restartDefaults.firstDelayMs);
});
