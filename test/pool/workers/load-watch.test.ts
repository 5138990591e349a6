// Checks of workers after a call was reclaimed: repeated as long as one may still load its definitions.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LoadWatch } from '../../../src/pool/workers/load-watch.js';
import type { TaskWorker } from '../../../src/pool/workers/worker-manager.js';
import { waitFor } from '../../support/index.js';

function worker(inFlight: number, orphanLoad?: number) {
  let looks = 0;
  let isKilled = false;
  return {
    isShared: false,
    inFlight,
    hasReclaimed: true,
    kill: () => {
      isKilled = true;
    },
    get orphanLoad() {
      looks += 1;
      return orphanLoad;
    },
    get state() {
      return isKilled ? 'ended' : 'ready';
    },
    get looks() {
      return looks;
    },
    get isKilled() {
      return isKilled;
    },
  };
}

test('an idle worker is checked once after a reclaim, a busy one again', async () => {
  const [idle, busy, loading] = [worker(0), worker(1), worker(0, 7)];
  const watch = new LoadWatch(0);
  for (const each of [idle, busy, loading]) watch.watch(each as unknown as TaskWorker);
  await waitFor(() => loading.isKilled);
  const looks = busy.looks;
  await waitFor(() => busy.looks > looks + 4);
  assert.equal(idle.looks, 1);
  assert.equal(busy.isKilled || idle.isKilled, false);
});
