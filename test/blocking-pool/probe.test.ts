// The wait of a job for a thread of the pool: at most one job of ours, and none before the first poll.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PoolProbe } from '../../src/blocking-pool/index.js';
import { waitFor } from '../support/index.js';

test('a poll reports the job that the previous poll started, and there is one at a time', async () => {
  const ends: (() => void)[] = [];
  const probe = new PoolProbe(() => new Promise<void>((resolve) => ends.push(resolve)));
  assert.equal(ends.length, 0);
  assert.equal(probe.poll(), undefined);
  const first = probe.poll() ?? Number.NaN;
  await waitFor(() => (probe.poll() ?? 0) > first); // grows while it waits
  assert.equal(ends.length, 1);
  ends[0]?.();
  await waitFor(() => {
    probe.poll();
    return ends.length === 2;
  });
});

test('a failed job counts as done, too', async () => {
  const probe = new PoolProbe(() => Promise.reject(new Error('as it should')));
  assert.equal(probe.poll(), undefined);
  await new Promise(setImmediate);
  const waitMs = probe.poll();
  await new Promise(setImmediate);
  assert.ok(waitMs !== undefined && waitMs >= 0);
});
