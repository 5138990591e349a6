// The scaling report in the terminal: measured values, then the laws fitted to them, apart.
import { alignColumns, failureLines, formatNumber, formatSpread } from '../table.js';
import type { Spread } from '../types.js';
import { type Fit, peakWorkers, speedUpAt, speedUpLimit } from './fit.js';
import { extrapolatedCounts } from './plan.js';
import type { Curve, CurvePoint, LawFit, Quartiles, WorkloadCurves } from './types.js';

/**
 * Lines for one workload. `cores`: number of measured cores; `physicalCores`: fewer when threads share one.
 */
export function workloadTable(
  { workload, says, curves, failed }: WorkloadCurves,
  rounds: number,
  physicalCores: number,
): string[] {
  const mostWorkers = mostWorkersOf(curves);
  return [
    `-- ${workload}: ${says}`,
    `measured (median and range of ${rounds} rounds; as many cores as workers)`,
    ...measuredTable(curves),
    ...failed.flatMap(failureLines),
    ...fittedTable(curves, extrapolatedCounts(mostWorkers)),
    ...caveats(curves, mostWorkers, physicalCores).map((line) => `! ${line}`),
  ];
}

/** Notes to every fit; also for the plot. */
export function caveats(
  curves: readonly Curve[],
  mostWorkers: number,
  physicalCores: number,
): string[] {
  const points = Math.min(...curves.flatMap(({ fits }) => (fits ? [fits.usl.fit.points] : [])));
  const lines: string[] = [];
  if (points === 1) {
    lines.push(
      'fitted to one worker count above 1: κ cannot be separated from σ, so κ = 0 is set and the USL is Amdahl’s law: one unknown for one point, which nothing here could contradict',
    );
  } else if (points === 2) {
    lines.push(
      'fitted to two worker counts above 1: the USL has as many unknowns, so nothing here could contradict it',
    );
  }
  if (curves.some(({ fits }) => fits !== undefined && isOutOfReach(fits.usl.fit))) {
    lines.push(
      'speed-ups below 1 or above n are out of reach of both laws (0 ≤ σ ≤ 1, κ ≥ 0): the fit stops at its bound',
    );
  }
  if (mostWorkers > physicalCores) {
    lines.push(
      `from ${physicalCores + 1} workers on, workers share physical cores: curves bend there, which neither law models`,
    );
  }
  return lines;
}

/** True: the fit is at a bound, and misses the points by more than rounding. */
const isOutOfReach = ({ sigma, kappa, error }: Fit): boolean =>
  error > 0.005 && (sigma === 1 || (sigma === 0 && kappa === 0));

export function mostWorkersOf(curves: readonly Curve[]): number {
  return Math.max(1, ...curves.flatMap(({ points }) => points.map(({ workers }) => workers)));
}

function measuredTable(curves: readonly Curve[]): string[] {
  const head = [
    '',
    'workers',
    'items/s',
    'IQR',
    'speed-up',
    'efficiency',
    'over the loop',
    'CPU/item, µs',
    'GC/item, µs',
  ];
  const body = curves.flatMap(({ contender, points }) =>
    points.map((point) => [contender, ...pointCells(point)]),
  );
  return alignColumns([head, ...body]);
}

function pointCells(point: CurvePoint): string[] {
  const { workers, perSecond, speedUp, overLoop, cpuUsPerItem, gcUsPerItem } = point;
  return [
    String(workers),
    formatSpread(perSecond),
    perSecond === undefined ? '-' : percent((perSecond.q3 - perSecond.q1) / perSecond.median),
    ofOne(speedUp),
    speedUp === undefined ? '-' : percent(speedUp.median / workers),
    ofOne(overLoop),
    formatSpread(cpuUsPerItem),
    formatSpread(gcUsPerItem),
  ];
}

/** A ratio to something that has no spread against itself. */
function ofOne(ratio: Quartiles | undefined): string {
  return ratio === undefined ? '-' : `${formatSpread(ratio)} ×`;
}

function fittedTable(curves: readonly Curve[], counts: readonly number[]): string[] {
  const fitted = curves.flatMap(({ contender, fits }) => (fits ? [{ contender, fits }] : []));
  if (fitted.length === 0) return ['nothing is fitted: it takes more than one worker count'];
  const head = [
    '',
    'σ',
    'κ',
    'peak, workers',
    'limit',
    'off by',
    ...counts.map((count) => `on ${count}`),
  ];
  const body = fitted.flatMap(({ contender, fits: { amdahl, usl } }) => [
    [`${contender}, Amdahl`, ...fitCells(amdahl, counts)],
    [`${contender}, USL`, ...fitCells(usl, counts)],
  ]);
  return [
    'fitted to the speed-ups, and extrapolated: nothing on the right was measured (range of fits to single rounds)',
    ...alignColumns([head, ...body]),
  ];
}

function fitCells({ fit, rounds }: LawFit, counts: readonly number[]): string[] {
  const around = (read: (fit: Fit) => number): string =>
    formatSpread(rangeAround(read(fit), rounds.map(read)));
  return [
    around(({ sigma }) => sigma),
    fit.fittedParameters === 1 ? '0 (set)' : around(({ kappa }) => kappa),
    orNone(peakWorkers(fit)),
    orNone(speedUpLimit(fit)),
    percent(fit.error),
    ...counts.map((count) => around((one) => speedUpAt(one, count))),
  ];
}

/** The fit to the medians stands in the middle; single rounds may all lie on one side of it. */
const rangeAround = (value: number, rounds: readonly number[]): Spread => ({
  median: value,
  min: Math.min(value, ...rounds),
  max: Math.max(value, ...rounds),
});

const orNone = (value: number): string => (Number.isFinite(value) ? formatNumber(value) : 'none');

/** To a tenth: finer is noise, and a fit through its points is off by rounding. */
const percent = (share: number): string => `${formatNumber(Math.round(1000 * share) / 10)} %`;
