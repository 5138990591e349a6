// CPU and memory of processes, from /proc: workers have no agent, and a blocked thread does not answer. Empty
// on systems without /proc.

import { rssBytesOf, runningStat } from '../proc/index.js';

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
