import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Pool, taskSignal } from '../../src/public.js';
import { Loads } from '../../src/worker/both/loads.js';
import { openDescriptors, random, waitFor } from '../support/index.js';

function terminated(loads: Loads): { isDone: boolean } {
  const state = { isDone: false };
  loads.whenSafe(
    () => {
      state.isDone = true;
    },
    () => false,
  );
  return state;
}

test('a thread is not terminated while it loads', async () => {
  const loads = new Loads();
  const state = terminated(loads);
  await sleep(20);
  assert.equal(state.isDone, false);
  new Loads(loads.buffer).end();
  await waitFor(() => state.isDone);
});

test('a thread that loads nothing is terminated at once', () => {
  const loads = new Loads();
  loads.end();
  assert.equal(terminated(loads).isDone, true);
});

test('a definition that was sent is waited for until it is learnt', async () => {
  const loads = new Loads();
  loads.end();
  loads.sent();
  const state = terminated(loads);
  assert.equal(state.isDone, false);
  loads.learnt();
  await waitFor(() => state.isDone);
});

test('a thread that was sent something and is at work is terminated all the same', async () => {
  const loads = new Loads();
  loads.end();
  loads.sent();
  const state = terminated(loads);
  await waitFor(() => state.isDone);
});

test('threads that are ended while they load modules leave no descriptors', async (t) => {
  const dice = random(t);
  const before = openDescriptors();
  for (let round = 0; round < 20; round += 1) {
    const pool = new Pool({ worker: 'thread', channel: 'memory', size: 2 });
    const calls = [1, 2].map(() => pool.run(() => taskSignal()?.aborted));
    await sleep(dice.integer(0, 80));
    await Promise.all([pool.destroy(), Promise.allSettled(calls)]);
  }
  const opened = openDescriptors().filter((name) => !before.includes(name));
  assert.deepEqual(opened, []);
});
