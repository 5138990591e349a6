// A scaling run without a machine: what contenders would have measured if they followed a law.
import { speedUpAt } from '../../../bench/report/scaling/fit.js';
import type { ScalingResult } from '../../../bench/report/scaling/types.js';
import type { Measured } from '../../../bench/report/types.js';

/** Rounds as factors of what the law gives. */
const rounds: readonly (number | null)[] = [1, 0.9, 1.1, 1, null];

export interface Law {
  readonly sigma: number;
  readonly kappa: number;
  /** Items per second on one worker. */
  readonly single: number;
}

/** Each contender of `laws` on each of `counts` workers, one workload `words`. */
export function scalingRun(
  counts: readonly number[],
  laws: Readonly<Record<string, Law>>,
  physicalCores: number = Math.max(...counts),
): ScalingResult {
  const measured = counts.flatMap((workers) =>
    Object.entries(laws)
      .filter(([contender]) => contender !== 'loop' || workers === 1)
      .map(([contender, law]) => measuredOn(workers, contender, law)),
  );
  return {
    machine: {
      cpu: 'Test <CPU>',
      cores: Math.max(...counts),
      physicalCores,
      node: 'v20.20.2',
      commit: '0123456789ab',
      date: '2026-01-02 03:04',
    },
    rounds: rounds.length,
    settings: Object.fromEntries(
      counts.map((workers) => [
        `words-${workers}`,
        { workload: 'words', workers, says: '10 × words' },
      ]),
    ),
    measured,
  };
}

function measuredOn(workers: number, contender: string, law: Law): Measured {
  const perSecond = law.single * speedUpAt(law, workers);
  return {
    setting: `words-${workers}`,
    contender,
    samples: {
      perSecond: rounds.map((factor) => (factor === null ? null : factor * perSecond)),
      cpuUsPerItem: rounds.map(() => 1e6 / law.single),
      gcUsPerItem: rounds.map(() => 2),
    },
    failures: [{ round: 5, says: 'no answer' }],
  };
}
