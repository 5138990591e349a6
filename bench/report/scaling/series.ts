// Numbers of a drawn curve: the measured points and the fitted laws, inside and beyond the measured range.
// Not here: drawing (plot.ts).
import { type Fit, speedUpAt } from './fit.js';
import type { Curve, Fits, LawFit, Quartiles } from './types.js';

/** A number against a number of workers. */
export type At = readonly [workers: number, value: number];

/** A measured value with its spread. */
export interface Mark extends Quartiles {
  readonly workers: number;
}

/** A fitted law as two lines that meet at the last measured number of workers. */
export interface LawLine {
  readonly inside: readonly At[];
  readonly beyond: readonly At[];
  /** From the lowest to the highest of the fits to single rounds. */
  readonly band: readonly (readonly [workers: number, lowest: number, highest: number])[];
}

export interface Series {
  readonly marks: readonly Mark[];
  /** Amdahl's law first; one line alone where both are the same. */
  readonly laws: readonly LawLine[];
}

/** Points of a line per doubling of workers. */
const pointsPerDoubling = 8;

/** Speed-up over one worker of the same contender. */
export function speedUpSeries({ points, fits }: Curve, measured: number, reach: number): Series {
  return {
    marks: points.flatMap(({ workers, speedUp }) => (speedUp ? [{ workers, ...speedUp }] : [])),
    laws: lawLines(fits, (fit) => lawLine(fit, measured, reach, speedUpAt)),
  };
}

/** Gain by each of n workers, in plain loops: 1 when they do the work of n loops. */
export function shareSeries({ points, fits }: Curve, measured: number, reach: number): Series {
  const single = points.find(({ workers }) => workers === 1)?.overLoop?.median;
  const shareAt = (fit: Fit, workers: number): number =>
    ((single ?? Number.NaN) * speedUpAt(fit, workers)) / workers;
  return {
    marks: points.flatMap(({ workers, overLoop }) =>
      overLoop ? [{ workers, ...divided(overLoop, workers) }] : [],
    ),
    laws:
      single === undefined ? [] : lawLines(fits, (fit) => lawLine(fit, measured, reach, shareAt)),
  };
}

function divided({ median, min, max, q1, q3 }: Quartiles, by: number): Quartiles {
  return { median: median / by, min: min / by, max: max / by, q1: q1 / by, q3: q3 / by };
}

function lawLines(fits: Fits | undefined, lineOf: (law: LawFit) => LawLine): LawLine[] {
  if (fits === undefined) return [];
  const { amdahl, usl } = fits;
  const isSame = usl.fit.fittedParameters === 1;
  return (isSame ? [amdahl] : [amdahl, usl]).map(lineOf);
}

function lawLine(
  { fit, rounds }: LawFit,
  measured: number,
  reach: number,
  valueAt: (fit: Fit, workers: number) => number,
): LawLine {
  const between = (from: number, to: number): At[] =>
    steps(from, to).map((workers) => [workers, valueAt(fit, workers)]);
  return {
    inside: between(1, measured),
    beyond: between(measured, reach),
    band: steps(1, reach).map((workers) => {
      const values = [fit, ...rounds].map((one) => valueAt(one, workers));
      return [workers, Math.min(...values), Math.max(...values)];
    }),
  };
}

/** Numbers of workers, both ends included, as many for each doubling. */
function steps(from: number, to: number): number[] {
  const count = Math.max(1, Math.ceil(Math.log2(to / from) * pointsPerDoubling));
  return Array.from({ length: count + 1 }, (_, step) => from * (to / from) ** (step / count));
}
