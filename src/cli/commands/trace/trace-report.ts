// Report of `manycore trace` as text for a terminal of 80 columns: CPU time by machine, role and call, and
// the tracing method. --json has the parts that do not fit.

import type { TracedCall, TracedThread, TraceReport } from '../../../syscalls/index.js';

/** HTTP requests that were answered during the trace. */
export interface CountedRequests {
  readonly count: number;
}

/** Groups that can have separate tables of calls. */
export const callGroups = ['program', 'role', 'thread'] as const;
export type CallGroup = (typeof callGroups)[number];

const width = 80;
/** Limits of the lines of each table. */
const maxCalls = 15;
const maxRoles = 12;
const callsOfRequest = 5;
/** With one table per role or thread: limits of the tables, and of the lines of each. */
const maxGroups = 12;
const callsOfGroup = 5;

export function textReport(
  report: TraceReport,
  requests: readonly string[],
  by: CallGroup = 'program',
): string {
  const { command, pid, tookMs, method, threads } = report;
  const count = threads.reduce((total, { tasks }) => total + tasks, 0);
  const what = `process ${pid}, ${whole(count)} thread${count === 1 ? '' : 's'}`;
  const parts = [
    [clip(command, width), `${what}, ${seconds(tookMs)}, by ${method}`],
    [machineLine(report), programLine(report)],
    rolesTable(report),
    ...callsTables(report, by),
    requests,
    overheadLines(report),
    ...report.notes.map((note) => [note]),
    ...missingLines(report).map((line) => [line]),
  ];
  return parts
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.flatMap(wrap).join('\n'))
    .join('\n\n');
}

/** Calls per request, with the most frequent calls by name. */
export function requestsText({ calls }: TraceReport, { count }: CountedRequests): string[] {
  const all = calls.reduce((total, call) => total + (call.count ?? 0), 0);
  if (count === 0) return ['requests  none was answered'];
  if (all === 0) return [`requests  ${whole(count)}`];
  const each = (call: TracedCall): string => ((call.count ?? 0) / count).toFixed(2);
  const most = [...calls]
    .sort((a, b) => (b.count ?? 0) - (a.count ?? 0))
    .slice(0, callsOfRequest)
    .map((call) => `${call.name} ${each(call)}`);
  return [
    `requests  ${whole(count)}, with ${(all / count).toFixed(2)} calls each: ${most.join(', ')}`,
  ];
}

function machineLine({ machine }: TraceReport): string {
  const { user, system, softInterrupt, idle, other, cores } = machine;
  const shares = [
    `user ${percent(user)}`,
    `system ${percent(system)}`,
    `soft interrupts ${percent(softInterrupt)}`,
    `idle ${percent(idle)}`,
    ...(other > 0.005 ? [`other ${percent(other)}`] : []),
  ];
  return `machine   ${shares.join('  ')}  of ${cores} core${cores === 1 ? '' : 's'}`;
}

function programLine({ program, tookMs }: TraceReport): string {
  const { userMs, systemMs, by, reads, writes } = program;
  const cores = ((userMs + systemMs) / tookMs).toFixed(2);
  const part = (ms: number): string => `${seconds(ms)} (${percent(ms / (userMs + systemMs || 1))})`;
  const guessed = by === 'ticks' ? ', by ticks' : '';
  const io =
    by === 'ticks' && reads !== null ? `; ${whole(reads)} reads, ${whole(writes ?? 0)} writes` : '';
  return `program   user ${part(userMs)}  system ${part(systemMs)}  ${cores} cores${guessed}${io}`;
}

function rolesTable({ roles, calls }: TraceReport): string[] {
  const isCounted = calls.some(({ count }) => count !== null);
  const counts = isCounted ? ['calls'] : [];
  const head = ['role', 'threads', 'user ms', 'system ms', ...counts, 'mostly'];
  const lines = roles.slice(0, maxRoles).map(({ role, threads, userMs, systemMs, calls: own }) => {
    const count = own.reduce((total, call) => total + (call.count ?? 0), 0);
    return [
      clip(role, 24),
      whole(threads),
      millis(userMs),
      millis(systemMs),
      ...counts.map(() => whole(count)),
      clip(own[0]?.name ?? '', 16),
    ];
  });
  return table([head, ...lines], new Set([0, head.length - 1]), roles.length - maxRoles);
}

function callsTables(report: TraceReport, by: CallGroup): string[][] {
  const { calls, roles, threads } = report;
  if (by === 'program') return [callsTable(report, { calls, threads }, maxCalls)];
  const cpuMs = ({ userMs, systemMs }: TracedThread): number => userMs + systemMs;
  const all =
    by === 'role'
      ? roles.map(({ role, calls: own }) => ({
          title: role,
          calls: own,
          threads: threads.filter((thread) => thread.role === role),
        }))
      : [...threads]
          .sort((a, b) => cpuMs(b) - cpuMs(a))
          .map((thread) => ({
            title: titleOf(thread),
            calls: thread.calls,
            threads: [thread],
          }));
  const groups = all.filter((group) => group.calls.length > 0);
  const left = groups.length - maxGroups;
  return [
    ...groups
      .slice(0, maxGroups)
      .map((group) => [clip(group.title, width), ...callsTable(report, group, callsOfGroup)]),
    left > 0 ? [`(${left} more ${by}${left === 1 ? '' : 's'} with calls: --json has all)`] : [],
  ];
}

function titleOf({ role, pid, tid, tasks }: TracedThread): string {
  return tid === 0 ? `${role}, ${whole(tasks)} in all` : `${role}, process ${pid}, thread ${tid}`;
}

function callsTable(
  { method, tookMs }: TraceReport,
  { calls, threads }: Pick<TraceReport, 'calls' | 'threads'>,
  most: number,
): string[] {
  const shown = calls.slice(0, most);
  const left = calls.length - most;
  const rate = (count: number): string => whole((count * 1000) / tookMs);
  const counted = ({ name, count, errors }: TracedCall): string[] => [
    name,
    known(count),
    count === null ? unknown : rate(count),
    known(errors),
  ];
  const head = ['call', 'count', 'per s', 'errors'];
  if (method === 'ebpf') {
    const lines = shown.map((call) => [
      ...counted(call),
      millis(call.onCpuMs ?? 0),
      perCall(call.onCpuMs, call.count),
      millis(call.blockedMs ?? 0),
    ]);
    return table([[...head, 'CPU ms', 'µs each', 'blocked ms'], ...lines], new Set([0]), left);
  }
  if (method === 'raw') {
    const byCount = [...calls].sort((a, b) => (b.count ?? 0) - (a.count ?? 0));
    const lines = byCount
      .slice(0, most)
      .map((call) => [...counted(call), millis(call.tookMs ?? 0)]);
    return table([[...head, 'ms, with waiting'], ...lines], new Set([0]), left);
  }
  const samples = threads.reduce((total, thread) => total + (thread.samples ?? 0), 0);
  const running = threads.reduce((total, thread) => total + (thread.running ?? 0), 0);
  const share = (seen: number): string => percent(seen / (samples || 1));
  const isCounted = calls.some(({ count }) => count !== null);
  const countsOf = (call: TracedCall): string[] => (isCounted ? counted(call).slice(1) : []);
  const lines = shown.map((call) => [
    call.name,
    ...countsOf(call),
    whole(call.seen ?? 0),
    share(call.seen ?? 0),
  ]);
  const blanks = isCounted ? ['', '', ''] : []; // it is no call
  const first = ['(running)', ...blanks, whole(running), share(running)];
  const heads = [...(isCounted ? head : ['call']), 'times seen', 'share'];
  return table([heads, first, ...lines], new Set([0]), left);
}

/** Formats a table: columns are as wide as their texts, numbers are aligned right. */
function table(
  rows: readonly (readonly string[])[],
  texts: ReadonlySet<number>,
  left: number,
): string[] {
  if (rows.length < 2) return [];
  const widths = (rows[0] ?? []).map((_, at) =>
    Math.max(...rows.map((row) => row[at]?.length ?? 0)),
  );
  const lines = rows.map((row) =>
    row
      .map((cell, at) =>
        texts.has(at) ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0),
      )
      .join('  ')
      .trimEnd(),
  );
  return left > 0 ? [...lines, `(${left} more: --json has all)`] : lines;
}

function overheadLines({ overhead, method, calls }: TraceReport): string[] {
  const { kernelShare, processShare } = overhead;
  const own = `${percent(processShare)} of a core in this process`;
  if (method === 'counters') {
    const isCountedInside = calls.some(({ count }) => count !== null);
    const inside = ', and what the library takes that counts in the program (not measured)';
    return [`overhead  ${own}${isCountedInside ? inside : ''}`];
  }
  const kernel =
    kernelShare === null
      ? 'not measured in the kernel (that takes root, and a while)'
      : `${percent(kernelShare)} of a core in the kernel, where it counts (sampled)`;
  return [`overhead  ${kernel}, ${own}`];
}

/** Methods that lack the same are in one sentence. */
function missingLines({ missing }: TraceReport): string[] {
  const methodsOf = new Map<string, string[]>();
  for (const { method, reason, wayOut, cost } of missing) {
    const text = `would see more: ${reason}. To have it, ${wayOut}. Its price: ${cost}.`;
    methodsOf.set(text, [...(methodsOf.get(text) ?? []), method]);
  }
  return [...methodsOf].map(([text, methods]) => `${methods.join(' and ')} ${text}`);
}

/** Lines that begin with a label and spaces; their continuation is indented by the label. */
const labelled = /^\w+ {2,}/;

/** Wraps a sentence at spaces; tables fit already. */
function wrap(line: string): string[] {
  const indent = ' '.repeat(labelled.exec(line)?.[0].length ?? 0);
  const lines: string[] = [];
  let rest = line;
  while (rest.length > width) {
    const at = rest.lastIndexOf(' ', width);
    if (at <= indent.length) break;
    lines.push(rest.slice(0, at).trimEnd());
    rest = indent + rest.slice(at).trimStart();
  }
  return [...lines, rest];
}

function clip(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 1)}…`;
}

/** Placeholder for values that the tracing method does not see. */
const unknown = '–';

function known(count: number | null): string {
  return count === null ? unknown : whole(count);
}

function whole(count: number): string {
  return Math.round(count).toLocaleString('en-US');
}

function millis(ms: number): string {
  return ms.toLocaleString('en-US', { maximumFractionDigits: 1, minimumFractionDigits: 1 });
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(2)} s`;
}

function percent(share: number): string {
  const rounded = share * 100;
  return `${rounded > 0 && rounded < 10 ? rounded.toFixed(1) : rounded.toFixed(0)} %`;
}

function perCall(ms: number | null, count: number | null): string {
  return (((ms ?? 0) * 1000) / (count || 1)).toFixed(1);
}
