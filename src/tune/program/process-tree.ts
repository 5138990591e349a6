// CPU, memory and liveness of a process and its descendants, from /proc. On other systems nothing is known,
// and the report omits these stats.

import { bytesIn, readTree, rssBytesOf, runningStat, textOf } from '../../proc/index.js';

export interface TreeProcess {
  readonly pid: number;
  /** Start time: it distinguishes processes with a reused number. */
  readonly startMs: number;
  /** CPU time, including children that have ended. */
  readonly cpuSeconds: number;
}

export interface TreeMemory {
  readonly memoryMiB: number;
  readonly largestMiB: number;
}

const bytesPerMib = 2 ** 20;

/** Returns the process and its descendants; `[]` when it has ended, or without /proc. */
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
 * Returns `undefined` for an empty tree. `memoryMiB`: private memory, and shared memory once; without the
 * text of node, whose share depends on other programs.
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

/** Returns true when workers of manycore run as processes, which have a title. */
export function hasWorkers(tree: readonly TreeProcess[]): boolean {
  return tree.some(({ pid }) =>
    /^manycore (shared )?worker \d/.test(textOf(`/proc/${pid}/cmdline`)),
  );
}
