// The last step for a task that was given up and has not begun: when its worker is ended, and when it has time.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LastStep } from '../../../src/pool/workers/last-step.js';
import { waitFor } from '../../support/index.js';

const blamed = { name: 'blamed' };
type Begin = LastStep['begin'];

/** A worker with the blamed task and `neighbours` others; counts how often it was checked. */
function make(neighbours: number) {
  const worker = {
    inFlight: 1 + neighbours,
    abandoned: new Set([blamed]),
    isLoading: false,
    state: 'ready',
    checks: 0,
    has: () => {
      worker.checks += 1;
      return true;
    },
    kill: () => {
      worker.state = 'ended';
    },
  };
  const lastStep = new LastStep({ neighbourGraceMs: 60_000, onCondemned: () => {} }, 5);
  const begin = (wasBehind: boolean) =>
    Reflect.apply<LastStep, Parameters<Begin>, void>(lastStep.begin, lastStep, [
      blamed,
      worker,
      false,
      wasBehind,
    ] as unknown as Parameters<Begin>);
  return { worker, begin };
}

test('a worker that reads nothing, with nobody else in it, is ended at once', () => {
  const { worker, begin } = make(0);
  begin(false);
  assert.equal(worker.state, 'ended');
});

test('a worker whose last neighbour has just been answered has time to answer', async () => {
  const { worker, begin } = make(0);
  begin(true);
  assert.equal(worker.state, 'ready');
  await waitFor(() => worker.state === 'ended');
  assert.equal(worker.checks, 1);
});

test('a worker is left alone behind a neighbour, and has time after it', async () => {
  const { worker, begin } = make(1);
  begin(true);
  await waitFor(() => worker.checks > 3);
  assert.equal(worker.state, 'ready');
  worker.inFlight -= 1;
  const { checks } = worker;
  await waitFor(() => worker.state === 'ended');
  assert.ok(worker.checks >= checks + 2);
});
