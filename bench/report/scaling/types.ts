// Input of the report of the scaling case, and its result.
import type { Measured, Spread } from '../types.js';
import type { Fit } from './fit.js';

/** A setting of the case: one workload on so many workers, and on as many cores. */
export interface ScalingSetting {
  readonly workload: string;
  readonly workers: number;
  /** Description of one item of the workload. */
  readonly says: string;
}

/** The part of a stored result that the report reads. */
export interface ScalingResult {
  readonly machine: {
    readonly cpu: string;
    readonly cores: number;
    readonly physicalCores: number;
    readonly node: string;
    readonly commit: string;
    readonly date: string;
  };
  readonly rounds: number;
  readonly settings: Readonly<Record<string, ScalingSetting>>;
  readonly measured: readonly Measured[];
}

/** Median, range and the middle half over the rounds that succeeded. */
export interface Quartiles extends Spread {
  readonly q1: number;
  readonly q3: number;
}

/** One contender on so many workers; failed measurements are `undefined`. */
export interface CurvePoint {
  readonly workers: number;
  readonly perSecond: Quartiles | undefined;
  /** Ratio of the medians to one worker of the same contender, and the spread of the rounds. */
  readonly speedUp: Quartiles | undefined;
  /** Ratio to the plain loop on one core. */
  readonly overLoop: Quartiles | undefined;
  readonly cpuUsPerItem: Spread | undefined;
  readonly gcUsPerItem: Spread | undefined;
}

/** A law fitted to the medians of a curve. */
export interface LawFit {
  readonly fit: Fit;
  /** The same law fitted to each round alone: a measure of the fit's certainty. */
  readonly rounds: readonly Fit[];
}

export interface Fits {
  readonly amdahl: LawFit;
  readonly usl: LawFit;
}

export interface Curve {
  readonly contender: string;
  /** By rising number of workers. */
  readonly points: readonly CurvePoint[];
  /** `undefined` when no more than one number of workers was measured. */
  readonly fits: Fits | undefined;
}

export interface WorkloadCurves {
  readonly workload: string;
  readonly says: string;
  /** The plain loop has one point; the others one for each number of workers. */
  readonly curves: readonly Curve[];
  /** Rounds that gave no numbers, by contender and number of workers. */
  readonly failed: readonly Pick<Measured, 'contender' | 'failures'>[];
}
