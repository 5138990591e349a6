// Two laws of scaling, fitted to measured speed-ups. They extrapolate to more workers than were measured, if
// only the law applies.
//
//   S(n) = n / (1 + σ (n − 1) + κ n (n − 1))
//
// σ is contention: the share of the work that waits for a resource which only one worker has at a time. κ is
// coherency: the cost of agreement between each pair of workers. With κ = 0 this is Amdahl's law (G. M.
// Amdahl, AFIPS 1967), where speed-up approaches 1/σ. With κ > 0 it is the Universal Scalability Law (N. J.
// Gunther, CMG 1993; Guerrilla Capacity Planning, 2007), where speed-up has a peak and falls.
//
// The sum of (measured / S(n) − 1)² is minimized. `measured / S(n)` is linear in σ and κ, so this is a linear
// problem of two unknowns with bounds: solved exactly here, with no first guess and no steps. S(1) = 1
// always: the measured single worker is the unit, so its own error is in every point.

/** `workers` from 1 on, `speedUp` over one worker, above 0. */
export interface SpeedUp {
  readonly workers: number;
  readonly speedUp: number;
}

export interface Fit {
  /** From 0 to 1. */
  readonly sigma: number;
  /** 0 or more. */
  readonly kappa: number;
  /** 1 for Amdahl's law; also for the USL when the points cannot separate κ from σ, and κ = 0 is set. */
  readonly fittedParameters: 1 | 2;
  /** Different numbers of workers above 1, by which the law can be refuted. */
  readonly points: number;
  /** Root mean square of measured / fitted − 1, over the points. */
  readonly error: number;
}

/** `undefined` when no more than one worker was measured. */
export function fitAmdahl(measured: readonly SpeedUp[]): Fit | undefined {
  const sums = sumUp(measured);
  if (sums.points === 0) return undefined;
  return fitted({ sigma: bestSigma(sums, 0), kappa: 0 }, sums, 1);
}

/** Fits the USL; with a single number of workers above 1 it is Amdahl's fit, see `fittedParameters`. */
export function fitUsl(measured: readonly SpeedUp[]): Fit | undefined {
  const sums = sumUp(measured);
  if (sums.points < 2) return fitAmdahl(measured);
  // The sum of squares is a bowl over the strip 0 ≤ σ ≤ 1, κ ≥ 0. Its lowest point is the bowl's own, if that
  // is inside, else on one of the three edges.
  const edges = [
    { sigma: bestSigma(sums, 0), kappa: 0 },
    { sigma: 0, kappa: bestKappa(sums, 0) },
    { sigma: 1, kappa: bestKappa(sums, 1) },
  ];
  const inside = bottom(sums);
  const best = inside ?? edges.reduce((a, b) => (cost(sums, b) < cost(sums, a) ? b : a));
  return fitted(best, sums, 2);
}

/** Speed-up for `workers` workers by the law, 1 for one. */
export function speedUpAt({ sigma, kappa }: Parameters, workers: number): number {
  return workers / (1 + sigma * (workers - 1) + kappa * workers * (workers - 1));
}

/** The number of workers beyond which speed-up falls, not rounded; `Infinity` when it never does. */
export function peakWorkers({ sigma, kappa }: Parameters): number {
  if (kappa === 0) return Number.POSITIVE_INFINITY;
  return Math.max(1, Math.sqrt((1 - sigma) / kappa));
}

/** The speed-up that no number of workers exceeds; `Infinity` for σ = κ = 0. */
export function speedUpLimit(fit: Parameters): number {
  const peak = peakWorkers(fit);
  return Number.isFinite(peak) ? speedUpAt(fit, peak) : 1 / fit.sigma;
}

interface Parameters {
  readonly sigma: number;
  readonly kappa: number;
}

/**
 * The sums of the problem "a σ + b κ = t, for each point, as nearly as possible", where
 * a = s (n − 1), b = s n (n − 1), t = 1 − s and s = speed-up / n.
 */
interface Sums {
  aa: number;
  ab: number;
  bb: number;
  at: number;
  bt: number;
  tt: number;
  count: number;
  points: number;
}

function sumUp(measured: readonly SpeedUp[]): Sums {
  const sums = { aa: 0, ab: 0, bb: 0, at: 0, bt: 0, tt: 0, count: 0, points: 0 };
  const above = measured.filter(({ workers }) => workers > 1);
  for (const { workers, speedUp } of above) {
    const a = (speedUp / workers) * (workers - 1);
    const b = a * workers;
    const t = 1 - speedUp / workers;
    sums.aa += a * a;
    sums.ab += a * b;
    sums.bb += b * b;
    sums.at += a * t;
    sums.bt += b * t;
    sums.tt += t * t;
  }
  sums.count = above.length;
  sums.points = new Set(above.map(({ workers }) => workers)).size;
  return sums;
}

const bestSigma = ({ ab, at, aa }: Sums, kappa: number): number =>
  Math.min(1, Math.max(0, (at - ab * kappa) / aa));

const bestKappa = ({ ab, bt, bb }: Sums, sigma: number): number =>
  Math.max(0, (bt - ab * sigma) / bb);

/** Returns the minimum of the sum of squares without bounds; `undefined` when it is out of them. */
function bottom({ aa, ab, bb, at, bt }: Sums): Parameters | undefined {
  const determinant = aa * bb - ab * ab;
  const sigma = (at * bb - bt * ab) / determinant;
  const kappa = (bt * aa - at * ab) / determinant;
  return sigma >= 0 && sigma <= 1 && kappa >= 0 ? { sigma, kappa } : undefined;
}

/** The sum of squares; rounding may bring it just below 0. */
function cost({ aa, ab, bb, at, bt, tt }: Sums, { sigma, kappa }: Parameters): number {
  const squares = aa * sigma * sigma + 2 * ab * sigma * kappa + bb * kappa * kappa;
  return Math.max(0, squares - 2 * (at * sigma + bt * kappa) + tt);
}

function fitted(parameters: Parameters, sums: Sums, fittedParameters: 1 | 2): Fit {
  return {
    ...parameters,
    fittedParameters,
    points: sums.points,
    error: Math.sqrt(cost(sums, parameters) / sums.count),
  };
}
