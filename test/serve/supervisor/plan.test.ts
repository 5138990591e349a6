// Growing and shrinking, without a server: loads are made up, ticks are calls.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  firstPlanState,
  type PlanLimits,
  type PlanState,
  planStep,
  spareUnits,
} from '../../../src/serve/supervisor/plan.js';

const limits: PlanLimits = { min: 1, max: 8, minSpare: 1, maxSpare: 2 };

/** Plays ticks: `busyAt(tick)` units' worth of load; answers the units after each. */
function play(
  busyAt: (tick: number) => number,
  ticks: number,
  within: PlanLimits = limits,
): number[] {
  let state: PlanState = firstPlanState;
  let units = within.min;
  return Array.from({ length: ticks }, (_, tick) => {
    const spare = Math.max(0, units - busyAt(tick));
    const step = planStep(state, { units, spare, hasBacklog: busyAt(tick) > units }, within);
    state = step.state;
    units += step.change;
    return units;
  });
}

test('a step in load from one unit to eight is met in four ticks: 1, 2, 4, 8', () => {
  assert.deepEqual(
    play(() => 8, 5),
    [2, 4, 8, 8, 8],
  );
});

test('a unit is spare while it works little, and needed when another is at 70 %', () => {
  assert.deepEqual(
    [0, 0.05, 0.2, 0.7, 0.8, 1.4, 1.6].map((busy) => spareUnits(3, busy)),
    [3, 3, 2, 2, 1, 1, 0],
  );
});

test('no more than 32 units are started in one tick', () => {
  const sizes = play(() => 500, 12, { ...limits, max: 500 });
  const steps = sizes.map((size, at) => size - (sizes[at - 1] ?? 1));
  assert.equal(Math.max(...steps), 32);
});

test('units are ended one at a time, after ten quiet ticks each', () => {
  const sizes = play((tick) => (tick < 4 ? 8 : 0), 40);
  assert.deepEqual(sizes.slice(3, 13), new Array(10).fill(8));
  assert.equal(sizes[13], 7);
  assert.deepEqual(sizes.slice(14, 23), new Array(9).fill(7));
  assert.equal(sizes[23], 6);
});

test('a unit that was ended too early makes the plan more patient', () => {
  const endsOf = (busyAt: (tick: number) => number) => {
    const sizes = play(busyAt, 400);
    return sizes.filter((size, at) => size < (sizes[at - 1] ?? 1)).length;
  };
  // The load comes back right after each end.
  const flapping = endsOf((tick) => (tick % 15 < 12 ? 1 : 6));
  const steady = endsOf((tick) => (tick < 5 ? 8 : 1));
  assert.ok(flapping < 400 / 15 / 2, `${flapping} ends of a load that flaps`);
  assert.ok(steady >= 4);
});

test('units above the most are ended at once, one at each tick', () => {
  const load = { units: 10, spare: 0, hasBacklog: true };
  assert.equal(planStep(firstPlanState, load, limits).change, -1);
  assert.equal(planStep(firstPlanState, { ...load, units: 8 }, limits).change, 0);
});

test('whatever comes, there are never fewer units than the least nor more than the most', () => {
  const load = fc.array(fc.nat(40), { minLength: 1, maxLength: 200 });
  const bounds = fc.record({ min: fc.integer({ min: 1, max: 5 }), more: fc.nat(20) });
  fc.assert(
    fc.property(load, bounds, (loads, { min, more }) => {
      const within = { ...limits, min, max: min + more };
      for (const units of play((tick) => loads[tick] ?? 0, loads.length, within)) {
        assert.ok(units >= within.min && units <= within.max);
      }
    }),
  );
});

test('an idle server shrinks to its minimum, plus the spare units', () => {
  assert.equal(play((tick) => (tick < 5 ? 8 : 0), 300).at(-1), 2);
});
