// The report of the scaling case: lines for the terminal, what is stored beside the samples, pictures.
import { curvesOf } from './curves.js';
import { drawScaling } from './plot.js';
import { workloadTable } from './table.js';
import type { ScalingResult } from './types.js';

export { workerCounts } from './plan.js';

export interface ScalingReport {
  readonly lines: readonly string[];
  /** Goes into the stored result. */
  readonly stored: Readonly<Record<string, unknown>>;
  /** Text by file name. */
  readonly files: Readonly<Record<string, string>>;
}

export function scalingReport(result: ScalingResult): ScalingReport {
  const workloads = curvesOf(result);
  const { rounds, machine } = result;
  const { cpu, cores, physicalCores, node, commit, date } = machine;
  const context = {
    rounds,
    physicalCores,
    machine: `${cpu}, ${cores} cores, Node ${node}, commit ${commit}, ${date.slice(0, 10)}`,
  };
  const files = workloads.flatMap((one) => {
    const svg = drawScaling(one, context);
    return svg === undefined ? [] : [[`${one.workload}.svg`, svg] as const];
  });
  return {
    lines: workloads.flatMap((one) => ['', ...workloadTable(one, rounds, physicalCores)]),
    stored: { curves: workloads },
    files: Object.fromEntries(files),
  };
}
