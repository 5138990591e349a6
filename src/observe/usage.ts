// CPU and memory of processes, read from /proc: workers have no agent, and one that is blocked does not
// answer. Nothing is known where there is no /proc.

import { rssBytesOf, runningStat } from '../proc/index.js';

export interface Usage {
  /** User and system time since its start. */
  readonly cpuMs: number;
  readonly rssBytes: number;
}

/** Of those that run. */
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
