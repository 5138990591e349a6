// From the samples of the scaling case to a curve for each workload and contender, with the two laws
// fitted to it.
import { quantile, roundRatios, spreadOf } from '../stats.js';
import type { Measured, Samples } from '../types.js';
import { type Fit, fitAmdahl, fitUsl, type SpeedUp } from './fit.js';
import type {
  Curve,
  CurvePoint,
  Fits,
  LawFit,
  Quartiles,
  ScalingResult,
  ScalingSetting,
  WorkloadCurves,
} from './types.js';

/** The contender without workers: the loop that everything is compared with. */
const plainLoop = 'loop';
/** Processes without messages: the limit of the machine. */
export const machineItself = 'no-parent';

type RoundSamples = readonly (number | null)[];
/** Results with their setting. */
type Run = Measured & { readonly at: ScalingSetting };

export function curvesOf({ settings, measured }: ScalingResult): WorkloadCurves[] {
  const runs: Run[] = measured.flatMap((one) => {
    const at = settings[one.setting];
    return at === undefined ? [] : [{ ...one, at }];
  });
  return groupBy(runs, ({ at }) => at.workload).map(([workload, own]) => ({
    workload,
    says: own[0]?.at.says ?? '',
    curves: curvesOfWorkload(own),
    failed: own
      .filter(({ failures }) => failures.length > 0)
      .map(({ contender, at, failures }) => ({
        contender: `${contender} on ${at.workers}`,
        failures,
      })),
  }));
}

function curvesOfWorkload(runs: readonly Run[]): Curve[] {
  const loop = runs.find(({ contender }) => contender === plainLoop)?.samples.perSecond;
  return groupBy(runs, ({ contender }) => contender).map(([contender, own]) => {
    const rising = own.toSorted((a, b) => a.at.workers - b.at.workers);
    const single = rising.find(({ at }) => at.workers === 1)?.samples.perSecond;
    const points = rising.map(({ at, samples }) => pointOf(at.workers, samples, single, loop));
    return { contender, points, fits: fitsOf(points, rising, single) };
  });
}

function pointOf(
  workers: number,
  { perSecond, cpuUsPerItem, gcUsPerItem }: Samples,
  single: RoundSamples | undefined,
  loop: RoundSamples | undefined,
): CurvePoint {
  return {
    workers,
    perSecond: quartilesOf(perSecond),
    speedUp: ratioOf(perSecond, single),
    overLoop: ratioOf(perSecond, loop),
    cpuUsPerItem: spreadOf(cpuUsPerItem),
    gcUsPerItem: spreadOf(gcUsPerItem),
  };
}

/** `undefined` when no round succeeded. */
export function quartilesOf(samples: RoundSamples | undefined): Quartiles | undefined {
  const spread = spreadOf(samples);
  const values = samples?.filter((value) => value !== null) ?? [];
  return spread && { ...spread, q1: quantile(values, 0.25), q3: quantile(values, 0.75) };
}

/**
 * Returns the ratio of the medians, as in a verdict, and the spread of the ratios of the rounds. Only rounds
 * in which both succeeded count: a round with one of them would move the ratio out of its range.
 */
function ratioOf(
  above: RoundSamples | undefined,
  below: RoundSamples | undefined,
): Quartiles | undefined {
  const ratios = roundRatios(above, below);
  const inBoth = (samples: RoundSamples | undefined) =>
    spreadOf(ratios.map((ratio, round) => (ratio === null ? null : (samples?.[round] ?? null))));
  const [mine, theirs, rounds] = [inBoth(above), inBoth(below), quartilesOf(ratios)];
  return mine && theirs && rounds && { ...rounds, median: mine.median / theirs.median };
}

function fitsOf(
  points: readonly CurvePoint[],
  runs: readonly Run[],
  single: RoundSamples | undefined,
): Fits | undefined {
  const medians = points.flatMap(({ workers, speedUp }) =>
    speedUp === undefined ? [] : [{ workers, speedUp: speedUp.median }],
  );
  const ratios = runs.map(({ at, samples }) => ({
    workers: at.workers,
    rounds: roundRatios(samples.perSecond, single),
  }));
  const rounds = (single ?? []).map((_, round) =>
    ratios.flatMap(({ workers, rounds }): SpeedUp[] => {
      const speedUp = rounds[round] ?? null;
      return speedUp === null ? [] : [{ workers, speedUp }];
    }),
  );
  const amdahl = fitLaw(fitAmdahl, medians, rounds);
  const usl = fitLaw(fitUsl, medians, rounds);
  return amdahl && usl && { amdahl, usl };
}

function fitLaw(
  fitTo: (measured: readonly SpeedUp[]) => Fit | undefined,
  medians: readonly SpeedUp[],
  rounds: readonly (readonly SpeedUp[])[],
): LawFit | undefined {
  const fit = fitTo(medians);
  return fit && { fit, rounds: rounds.map(fitTo).filter((one) => one !== undefined) };
}

/** Returns groups in the order in which their keys come first. */
function groupBy<T>(all: readonly T[], keyOf: (one: T) => string): [key: string, group: T[]][] {
  const keys = [...new Set(all.map(keyOf))];
  return keys.map((key) => [key, all.filter((one) => keyOf(one) === key)]);
}
