// Row of a thread: its loop, heap and garbage collector, from the stats of two polls.

import type { ThreadStats } from '../../agent/index.js';
import type { GcStats } from '../../heap/index.js';
import type { SilentThread } from '../programs.js';
import { maxOf, type Processes, total } from './rates.js';
import type { ThreadView } from './view-types.js';

/** `isFirst`: the first row of its process, which shows the CPU and memory of the process. */
export function threadView(
  now: ThreadStats,
  last: ThreadStats | undefined,
  isFirst: boolean,
  { cpuShareOf, rssBytesOf }: Processes,
): ThreadView {
  const { pid, thread, loop, heap } = now;
  const activeMs = loop.activeMs - (last?.loop.activeMs ?? 0);
  const wholeMs = activeMs + loop.idleMs - (last?.loop.idleMs ?? 0);
  const elapsedMs = now.uptimeMs - (last?.uptimeMs ?? 0);
  return {
    pid,
    thread,
    role: roleOf(now),
    isSilent: false,
    utilization: last === undefined || wholeMs <= 0 ? undefined : share(activeMs / wholeMs),
    lagP50Ms: loop.lag?.p50Ms,
    lagP99Ms: loop.lag?.p99Ms,
    lagMaxMs: loop.lag?.maxMs,
    heapUsedBytes: heap.usedBytes,
    heapLimitBytes: heap.limitBytes,
    gcShare: last && share((gcMs(now) - gcMs(last)) / elapsedMs),
    gcMaxMs: maxOf(Object.values(now.gc).map(({ maxMs }: GcStats) => maxMs)),
    rssBytes: isFirst ? (rssBytesOf(pid) ?? now.process?.rssBytes) : undefined,
    cpuShare: isFirst ? (cpuShareOf(pid) ?? ownCpuShare(now, last)) : undefined,
  };
}

/** Substitute for systems without /proc. */
function ownCpuShare(now: ThreadStats, last: ThreadStats | undefined): number | undefined {
  if (now.process === undefined || last?.process === undefined) return undefined;
  const usedMs =
    now.process.userMs + now.process.systemMs - last.process.userMs - last.process.systemMs;
  return usedMs / (now.uptimeMs - last.uptimeMs);
}

function gcMs({ gc }: ThreadStats): number {
  return total(Object.values(gc).map(({ totalMs }: GcStats) => totalMs)) ?? 0;
}

function share(value: number): number {
  return Math.min(1, Math.max(0, value));
}

/** Role of a thread: `main`, `thread 2`, or in a server `loop 0.1`. */
export function roleOf({ thread, sources }: Pick<ThreadStats, 'thread' | 'sources'>): string {
  const served = sources.find(({ kind }) => kind === 'servedLoop');
  const { process, loop }: { process?: number; loop?: number } = Object(served?.stats);
  if (process !== undefined && loop !== undefined) return `loop ${process}.${loop}`;
  return nameOf(thread);
}

function nameOf(thread: number): string {
  return thread === 0 ? 'main' : `thread ${thread}`;
}

export function silentView(
  { pid, thread, last }: SilentThread,
  isFirst: boolean,
  { cpuShareOf, rssBytesOf }: Processes,
): ThreadView {
  return {
    pid,
    thread,
    role: last === undefined ? nameOf(thread) : roleOf(last),
    isSilent: true,
    utilization: undefined,
    lagP50Ms: undefined,
    lagP99Ms: undefined,
    lagMaxMs: undefined,
    heapUsedBytes: undefined,
    heapLimitBytes: undefined,
    gcShare: undefined,
    gcMaxMs: undefined,
    rssBytes: isFirst ? rssBytesOf(pid) : undefined,
    cpuShare: isFirst ? cpuShareOf(pid) : undefined,
  };
}
