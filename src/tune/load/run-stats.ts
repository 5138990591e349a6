// Length, stats and score of one run.

import { CodedError } from '../../errors.js';

export interface RunStats {
  /** Requests, or calls of a task, that succeeded. */
  readonly perSecond: number;
  /** Requests or calls that failed. */
  readonly errorsPerSecond: number;
  /** Set where the load reports it. */
  readonly p50Ms?: number | undefined;
  readonly p99Ms?: number | undefined;
  /** Memory of the program with its children, at the end of the run; set where the system reports it. */
  readonly memoryMiB?: number | undefined;
  /** Memory of its largest process. */
  readonly largestMiB?: number | undefined;
  /** Cores that the program kept busy. */
  readonly cpuCores?: number | undefined;
}

export interface RunLength {
  /** Time under load before the measurement. */
  readonly warmUpSeconds: number;
  readonly seconds: number;
}

export const goals = ['throughput', 'p99', 'cpu'] as const;

/** `throughput`: most requests. `p99`: lowest p99. `cpu`: most requests per second of CPU. */
export type Goal = (typeof goals)[number];

/** Returns the score: more is better. NaN without the needed stats. */
export function scoreOf({ perSecond, p99Ms, cpuCores }: RunStats, goal: Goal): number {
  const scores = {
    throughput: perSecond,
    p99: 1 / (p99Ms ?? Number.NaN),
    cpu: perSecond / (cpuCores ?? Number.NaN),
  };
  return Number.isFinite(scores[goal]) ? scores[goal] : Number.NaN;
}

const wayOut: Readonly<Record<Goal, string>> = {
  throughput: 'the load reported a duration of zero: let it report its seconds',
  p99: 'the load does not report it: use wrk --latency, or let the script resolve with p99Ms',
  cpu: 'the CPU time of the program is unknown: that needs /proc and a load that keeps it busy',
};

export function missingMeasure(goal: Goal): CodedError {
  return new CodedError('OPTION_INVALID', `the goal is ${goal}, and ${wayOut[goal]}`);
}
