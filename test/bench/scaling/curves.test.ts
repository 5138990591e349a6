import assert from 'node:assert/strict';
import { test } from 'node:test';
import { curvesOf, quartilesOf } from '../../../bench/report/scaling/curves.js';
import { scalingRun } from './given.js';

const laws = {
  shm: { sigma: 0.05, kappa: 0.001, single: 900 },
  loop: { sigma: 0, kappa: 0, single: 1000 },
};

function curveOf(contender: string, run = scalingRun([1, 2, 4, 8], laws)) {
  const [workload] = curvesOf(run);
  const curve = workload?.curves.find((one) => one.contender === contender);
  assert.ok(curve !== undefined);
  return curve;
}

test('a curve has the speed-up over its own single worker and over the plain loop', () => {
  const [one, two] = curveOf('shm').points;
  assert.equal(one?.speedUp?.median, 1);
  assert.equal(one?.overLoop?.median, 0.9);
  const expected = 2 / (1 + 0.05 + 0.002);
  assert.ok(Math.abs((two?.speedUp?.median ?? 0) - expected) < 1e-9);
  assert.ok(Math.abs((two?.overLoop?.median ?? 0) - 0.9 * expected) < 1e-9);
});

test('a round that failed is left out, and its message is kept with the number of workers', () => {
  const [workload] = curvesOf(scalingRun([1, 2], laws));
  assert.deepEqual(workload?.curves[0]?.points[0]?.perSecond, {
    median: 900,
    min: 810,
    max: 990.0000000000001,
    q1: 877.5,
    q3: 922.5,
  });
  assert.deepEqual(workload?.failed[0], {
    contender: 'shm on 1',
    failures: [{ round: 5, says: 'no answer' }],
  });
});

test('both laws are fitted to the medians, and to each round that succeeded', () => {
  const { fits } = curveOf('shm');
  assert.ok(Math.abs((fits?.usl.fit.sigma ?? 0) - 0.05) < 1e-9);
  assert.ok(Math.abs((fits?.usl.fit.kappa ?? 0) - 0.001) < 1e-9);
  assert.equal(fits?.amdahl.fit.kappa, 0);
  assert.equal(fits?.usl.rounds.length, 4);
});

test('the plain loop is one point, and nothing is fitted to it', () => {
  const loop = curveOf('loop');
  assert.equal(loop.points.length, 1);
  assert.equal(loop.fits, undefined);
});

test('without the plain loop there is no ratio to it', () => {
  const { shm } = laws;
  assert.equal(curveOf('shm', scalingRun([1, 2], { shm })).points[1]?.overLoop, undefined);
});

test('a ratio is that of the rounds in which both sides succeeded', () => {
  const run = scalingRun([1, 2], laws);
  const measured = run.measured.map((one) =>
    one.setting === 'words-2' ? { ...one, samples: { perSecond: [null, 3600] } } : one,
  );
  // One worker did 900 in the median of its rounds, but 810 in the only one that both have.
  const { speedUp } = curveOf('shm', { ...run, measured }).points[1] ?? {};
  assert.ok(Math.abs((speedUp?.median ?? 0) - 3600 / 810) < 1e-9);
});

test('quartiles lie on the line between the nearest values', () => {
  assert.deepEqual(quartilesOf([4, null, 1, 3, 2]), {
    median: 2.5,
    min: 1,
    max: 4,
    q1: 1.75,
    q3: 3.25,
  });
  assert.equal(quartilesOf([null]), undefined);
});
