// CPU and memory of processes, from /proc: workers have no agent, and a blocked thread does not answer. Empty
// on systems without /proc.

import { readTree, rssBytesOf, runningStat } from '../proc/index.js';

export interface Usage {
  /** User and system time since the start of the process. */
  readonly cpuMs: number;
  readonly rssBytes: number;
}

/** Usage of those processes that run, by pid. */
export function usageOf(pids: Iterable<number>): Map<number, Usage> {
  const found = new Map<number, Usage>();
  for (const pid of pids) {
    const usage = read(pid);
    if (usage !== undefined) found.set(pid, usage);
  }
  return found;
}

function read(pid: number): Usage | undefined {
  const stat = runningStat(pid);
  if (stat === undefined) return undefined;
  return { cpuMs: stat.userMs + stat.systemMs, rssBytes: rssBytesOf(pid) };
}

/** A process of a partition, as the system outside sees it. */
export interface TreeProcess {
  readonly pid: number;
  /** At most 15 characters, which code inside can choose. */
  readonly name: string;
  /** Number of its ancestors up to the first process of the tree, which is the one outside. */
  readonly depth: number;
}

/** The processes of each partition, by the pid of the one outside; parents stand before their children. */
export function partitionTrees(pids: Iterable<number>): Map<number, readonly TreeProcess[]> {
  return new Map([...pids].map((pid) => [pid, treeOf(pid)]));
}

function treeOf(root: number): TreeProcess[] {
  const childrenOf = new Map<number, { readonly pid: number; readonly name: string }[]>();
  let outside: string | undefined;
  for (const pid of readTree(root)) {
    const stat = runningStat(pid);
    if (stat === undefined) continue;
    if (pid === root) outside = stat.name;
    const siblings = childrenOf.get(stat.parentPid) ?? [];
    childrenOf.set(stat.parentPid, [...siblings, { pid, name: stat.name }]);
  }
  const below = (pid: number, depth: number): TreeProcess[] =>
    (childrenOf.get(pid) ?? []).flatMap((child) => [
      { ...child, depth },
      ...below(child.pid, depth + 1),
    ]);
  return outside === undefined ? [] : [{ pid: root, name: outside, depth: 0 }, ...below(root, 1)];
}
