import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  type Fit,
  fitAmdahl,
  fitUsl,
  peakWorkers,
  speedUpAt,
  speedUpLimit,
} from '../../../bench/report/scaling/fit.js';
import { random } from '../../support/index.js';

const share = fc.double({ min: 0, max: 1, noNaN: true });
const cost = fc.double({ min: 0, max: 0.1, noNaN: true });
const law = fc.record({ sigma: share, kappa: cost });
/** As many different numbers of workers above 1 as the law has unknowns, at least; and 1 itself. */
const workerCounts = fc
  .uniqueArray(fc.integer({ min: 2, max: 128 }), { minLength: 2, maxLength: 12 })
  .map((above) => [1, ...above]);

const curve = (parameters: { sigma: number; kappa: number }, counts: readonly number[]) =>
  counts.map((workers) => ({ workers, speedUp: speedUpAt(parameters, workers) }));

/** Any measurement, noise and nonsense included. */
const noisy = workerCounts.chain((counts) =>
  fc
    .array(fc.double({ min: 0.05, max: 3, noNaN: true }), {
      minLength: counts.length,
      maxLength: counts.length,
    })
    .map((factors) =>
      counts.map((workers, at) => ({
        workers,
        speedUp: workers === 1 ? 1 : workers * (factors[at] ?? 1),
      })),
    ),
);

function near(got: number, wanted: number, tolerance: number): void {
  assert.ok(Math.abs(got - wanted) <= tolerance, `${got} is not ${wanted}`);
}

function fitOf(fit: Fit | undefined): Fit {
  assert.ok(fit !== undefined);
  return fit;
}

/** What the fit makes smallest. */
function squares(fit: { sigma: number; kappa: number }, points: ReturnType<typeof curve>): number {
  return points
    .map(({ workers, speedUp }) => speedUp / speedUpAt(fit, workers) - 1)
    .reduce((sum, error) => sum + error * error, 0);
}

test('the parameters of a noiseless USL curve are found again', (t) => {
  const { seed } = random(t);
  fc.assert(
    fc.property(law, workerCounts, (truth, counts) => {
      const fit = fitOf(fitUsl(curve(truth, counts)));
      near(fit.sigma, truth.sigma, 1e-6);
      near(fit.kappa, truth.kappa, 1e-6);
      near(fit.error, 0, 1e-6);
      assert.equal(fit.fittedParameters, 2);
    }),
    { seed },
  );
});

test("the serial share of a noiseless curve of Amdahl's law is found again, by both laws", (t) => {
  const { seed } = random(t);
  fc.assert(
    fc.property(share, workerCounts, (sigma, counts) => {
      const points = curve({ sigma, kappa: 0 }, counts);
      near(fitOf(fitAmdahl(points)).sigma, sigma, 1e-6);
      const usl = fitOf(fitUsl(points));
      near(usl.sigma, sigma, 1e-6);
      near(usl.kappa, 0, 1e-6);
    }),
    { seed },
  );
});

test('whatever was measured, the fit stays in its bounds and one worker is 1', (t) => {
  const { seed } = random(t);
  fc.assert(
    fc.property(noisy, (points) => {
      for (const fit of [fitOf(fitAmdahl(points)), fitOf(fitUsl(points))]) {
        assert.ok(fit.sigma >= 0 && fit.sigma <= 1, `σ = ${fit.sigma}`);
        assert.ok(fit.kappa >= 0 && Number.isFinite(fit.kappa), `κ = ${fit.kappa}`);
        assert.ok(fit.error >= 0);
        assert.equal(speedUpAt(fit, 1), 1);
      }
    }),
    { seed },
  );
});

test('no parameters within the bounds fit better than those found', (t) => {
  const { seed } = random(t);
  fc.assert(
    fc.property(noisy, law, (points, other) => {
      const slack = 1e-9 + 1e-9 * squares(other, points);
      assert.ok(squares(fitOf(fitUsl(points)), points) <= squares(other, points) + slack);
      const amdahl = { sigma: other.sigma, kappa: 0 };
      assert.ok(squares(fitOf(fitAmdahl(points)), points) <= squares(amdahl, points) + slack);
    }),
    { seed },
  );
});

test('speed-up rises up to the peak, falls behind it, and never exceeds workers or limit', (t) => {
  const { seed } = random(t);
  fc.assert(
    fc.property(law, fc.integer({ min: 1, max: 500 }), (parameters, workers) => {
      const [here, next] = [speedUpAt(parameters, workers), speedUpAt(parameters, workers + 1)];
      const slack = 1e-9 * here;
      if (workers + 1 <= peakWorkers(parameters)) assert.ok(next >= here - slack);
      if (workers >= peakWorkers(parameters)) assert.ok(next <= here + slack);
      assert.ok(here <= workers + slack && here <= speedUpLimit(parameters) + slack);
    }),
    { seed },
  );
});

test('with one number of workers above 1 the USL is Amdahl with κ set to 0, and says so', () => {
  const points = [
    { workers: 1, speedUp: 1 },
    { workers: 2, speedUp: 1.6 },
  ];
  const fit = fitOf(fitUsl(points));
  assert.deepEqual(fit, fitAmdahl(points));
  assert.deepEqual([fit.fittedParameters, fit.points, fit.kappa], [1, 1, 0]);
  near(fit.sigma, 0.25, 1e-12);
});

test('with one worker alone there is nothing to fit', () => {
  assert.equal(fitUsl([{ workers: 1, speedUp: 1 }]), undefined);
  assert.equal(fitAmdahl([]), undefined);
});

test('more than n-fold on n workers is as good as the law gets: σ = 0', () => {
  const fit = fitOf(fitUsl([2, 3, 4].map((workers) => ({ workers, speedUp: 1.1 * workers }))));
  assert.deepEqual([fit.sigma, fit.kappa], [0, 0]);
  near(fit.error, 0.1, 1e-12);
  assert.equal(speedUpLimit(fit), Number.POSITIVE_INFINITY);
});
