// What was traced as folded stacks, one line each: the frames with `;` between them, a space, a number.
// Flame graphs are drawn of that by flamegraph.pl, inferno or speedscope. Frames: role, thread, call.

import type { TracedCall, TracedThread, TraceReport } from './report.js';

const nsPerMs = 1_000_000;

function frames({ role, name, tid }: TracedThread): string {
  const clean = (text: string): string => text.replace(/[;\s]+/g, '_');
  return `${clean(role)};${clean(name)}${tid === 0 ? '' : `-${tid}`}`;
}

/** One line for each call of each thread: how often; where nobody counts, how often it was found there. */
export function foldCounts({ threads }: TraceReport): string {
  const lines = threads.flatMap((thread) =>
    thread.calls.map((call): [string, number] => [
      `${frames(thread)};${call.name}`,
      call.count ?? call.seen ?? 0,
    ]),
  );
  return textOf(lines);
}

/** CPU time outside calls, and time in them on the CPU and off it, in ns. */
export function foldTimes({ threads }: TraceReport): string {
  const lines = threads.flatMap((thread) => {
    const stack = frames(thread);
    const own: [string, number][] = [[`${stack};user`, thread.userMs]];
    // Where calls have no times, the system time of the thread has no name.
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
