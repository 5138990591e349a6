// What the system says of a process and all that it has started: CPU, memory, whether they still run.
// From /proc; where there is none, nothing is known, and the report leaves it out.

import { bytesIn, readTree, rssBytesOf, runningStat, textOf } from '../proc/index.js';

export interface TreeProcess {
  readonly pid: number;
  /** When it was started: with it a number that was given again is another process. */
  readonly startMs: number;
  /** With that of its children that have ended. */
  readonly cpuSeconds: number;
}

export interface TreeMemory {
  readonly memoryMiB: number;
  readonly largestMiB: number;
}

const bytesPerMib = 2 ** 20;

/** The process and its descendants; `[]` where it has ended, or the system does not say. */
export function treeOf(root: number): TreeProcess[] {
  return readTree(root).flatMap(processAt);
}

function processAt(pid: number): TreeProcess[] {
  const stat = runningStat(pid);
  if (stat === undefined) return [];
  const { startMs, userMs, systemMs, children } = stat;
  const cpuMs = userMs + systemMs + children.userMs + children.systemMs;
  return [{ pid, startMs, cpuSeconds: cpuMs / 1000 }];
}

export function isRunning({ pid, startMs }: TreeProcess): boolean {
  return processAt(pid).some((now) => now.startMs === startMs);
}

/**
 * `undefined` of nothing. `memoryMiB` is what they hold for themselves, shared memory once: without the
 * text of node, whose share would change with what else runs here.
 */
export function memoryOf(tree: readonly TreeProcess[]): TreeMemory | undefined {
  if (tree.length === 0) return undefined;
  const resident = tree.map(({ pid }) => rssBytesOf(pid));
  const shares = tree.map(({ pid }, at) => {
    const rollup = textOf(`/proc/${pid}/smaps_rollup`);
    return bytesIn(rollup, 'Pss_Anon') + bytesIn(rollup, 'Pss_Shmem') || (resident[at] ?? 0);
  });
  const sum = shares.reduce((all, each) => all + each, 0);
  return { memoryMiB: sum / bytesPerMib, largestMiB: Math.max(...resident) / bytesPerMib };
}

/** Workers that manycore started, as processes: they have a title. */
export function hasWorkers(tree: readonly TreeProcess[]): boolean {
  return tree.some(({ pid }) =>
    /^manycore (shared )?worker \d/.test(textOf(`/proc/${pid}/cmdline`)),
  );
}
