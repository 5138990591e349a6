// Calls that count as snapshots.

import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { test } from 'node:test';
import {
  captureStats,
  createExporter,
  propagate,
  watchCaptures,
} from '../../../src/context/index.js';

/** Number of snapshots taken in `work`. */
function snapshotsIn(work: () => void): number {
  const before = captureStats().count;
  work();
  return captureStats().count - before;
}

test('only a call that takes a snapshot counts as one, also with storages that travel', (t) => {
  watchCaptures(true);
  t.after(() => watchCaptures(false));
  const exporter = createExporter();
  const storage = propagate(new AsyncLocalStorage<string>(), 'test:captures');
  const constant = (value: number): number => value + 1;
  const call = () => void exporter.exportFunction(constant);
  assert.equal(snapshotsIn(call), 1);
  assert.equal(snapshotsIn(call), 0);
  assert.equal(
    snapshotsIn(() => storage.run('request', call)),
    1,
  );
  let changing = 0;
  const counting = (): number => changing;
  changing += 1;
  const callCounting = () => void exporter.exportFunction(counting);
  assert.equal(snapshotsIn(callCounting), 1);
  assert.equal(snapshotsIn(callCounting), 1);
});
