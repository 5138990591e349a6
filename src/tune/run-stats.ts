// One run: how long it is, its stats, and what is better.

import { CodedError } from '../errors.js';

export interface RunStats {
  /** Requests, or calls of a task, that succeeded. */
  readonly perSecond: number;
  /** Of those that failed. */
  readonly errorsPerSecond: number;
  /** Where the load says so. */
  readonly p50Ms?: number | undefined;
  readonly p99Ms?: number | undefined;
  /** Of the program with its children, at the end of the run; where the system says so. */
  readonly memoryMiB?: number | undefined;
  /** Of the largest of its processes. */
  readonly largestMiB?: number | undefined;
  /** Cores that it kept busy. */
  readonly cpuCores?: number | undefined;
}

export interface RunLength {
  /** Under load, before anything is counted. */
  readonly warmUpSeconds: number;
  readonly seconds: number;
}

export const goals = ['throughput', 'p99', 'cpu'] as const;

/** `throughput`: as many as possible. `p99`: the slowest fast. `cpu`: as many for each second of CPU. */
export type Goal = (typeof goals)[number];

/** More is better. NaN where the stats do not say. */
export function scoreOf({ perSecond, p99Ms, cpuCores }: RunStats, goal: Goal): number {
  const scores = {
    throughput: perSecond,
    p99: 1 / (p99Ms ?? Number.NaN),
    cpu: perSecond / (cpuCores ?? Number.NaN),
  };
  return Number.isFinite(scores[goal]) ? scores[goal] : Number.NaN;
}

const wayOut: Readonly<Record<Goal, string>> = {
  throughput: 'the load says that it took no time: let it say how long it took',
  p99: 'the load does not say it: give wrk --latency, or let the script resolve with p99Ms',
  cpu: 'no CPU time of the program can be seen: that needs /proc and a load that keeps it busy',
};

export function missingMeasure(goal: Goal): CodedError {
  return new CodedError('OPTION_INVALID', `the goal is ${goal}, and ${wayOut[goal]}`);
}
