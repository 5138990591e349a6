// A trace as folded stacks, one a line: frames separated by `;`, a space, a number. flamegraph.pl, inferno
// and speedscope draw flame graphs of it. Frames: role, thread, call.

import type { TracedCall, TracedThread, TraceReport } from './report.js';

const nsPerMs = 1_000_000;

function frames({ role, name, tid }: TracedThread): string {
  const clean = (text: string): string => text.replace(/[;\s]+/g, '_');
  return `${clean(role)};${clean(name)}${tid === 0 ? '' : `-${tid}`}`;
}

/** Returns a line for each call of each thread: its count, or without counts the number of samples in it. */
export function foldCounts({ threads }: TraceReport): string {
  const lines = threads.flatMap((thread) =>
    thread.calls.map((call): [string, number] => [
      `${frames(thread)};${call.name}`,
      call.count ?? call.seen ?? 0,
    ]),
  );
  return textOf(lines);
}

/** Returns CPU time outside calls, and time in calls on and off the CPU, in ns. */
export function foldTimes({ threads }: TraceReport): string {
  const lines = threads.flatMap((thread) => {
    const stack = frames(thread);
    const own: [string, number][] = [[`${stack};user`, thread.userMs]];
    // Without times of calls, the system time of a thread has no frame of its own.
    const hasTimes = thread.calls.some(({ onCpuMs, tookMs }) => (onCpuMs ?? tookMs) !== null);
    if (!hasTimes) own.push([`${stack};system`, thread.systemMs]);
    return [...own, ...thread.calls.flatMap((call) => timesOf(stack, call))];
  });
  return textOf(lines.map(([stack, ms]) => [stack, Math.round(ms * nsPerMs)]));
}

function timesOf(
  stack: string,
  { name, onCpuMs, blockedMs, tookMs }: TracedCall,
): [string, number][] {
  if (tookMs !== null) return [[`${stack};${name}`, tookMs]];
  return [
    [`${stack};${name};on_cpu`, onCpuMs ?? 0],
    [`${stack};${name};blocked`, blockedMs ?? 0],
  ];
}

function textOf(lines: readonly (readonly [string, number])[]): string {
  const shown = lines.filter(([, value]) => value > 0);
  return shown.map(([stack, value]) => `${stack} ${value}\n`).join('');
}
