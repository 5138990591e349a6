// What the kernel counted as calls and times of a report, and what the report is made of. Not here: which
// line a record belongs to (assemble.ts, shared-records.ts).

import type { NativeTracedCall, NativeTracedRecord } from '../native.js';
import type { TraceMethod } from './methods.js';
import type { ProcessIdentity } from './proc.js';
import type { TracedCall } from './report.js';
import type { ProcessTree, SeenThread } from './tree.js';

const nsPerMs = 1_000_000;

export interface Material {
  readonly method: TraceMethod;
  readonly tree: ProcessTree;
  /** What the kernel counted, or for `counters` what a library in the command did. */
  readonly records: readonly NativeTracedRecord[];
  /** Who the traced process is. */
  readonly root: ProcessIdentity;
  /** Processes that were followed by their numbers: their threads have lines of their own. */
  readonly followed: ReadonlySet<number>;
}

/** Of one thread: a record for each program that it has run. */
export interface Joined {
  readonly pid: number;
  readonly tid: number;
  readonly seen: SeenThread | undefined;
  readonly records: readonly NativeTracedRecord[];
}

/** System time is what was spent in calls; all other CPU time counts as the program's own. */
export function timesByCalls(runNs: number, records: readonly NativeTracedRecord[]) {
  const calls = records.flatMap((record) => record.calls);
  const systemNs = calls.reduce((total, { tookNs, blockedNs }) => total + tookNs - blockedNs, 0);
  return {
    userMs: Math.max(0, runNs - systemNs) / nsPerMs,
    systemMs: systemNs / nsPerMs,
  };
}

function nameOf(number: number, names: ReadonlyMap<number, string>): string {
  return names.get(number) ?? `call ${number}`;
}

export function countedCalls(
  records: readonly NativeTracedRecord[],
  method: TraceMethod,
  names: ReadonlyMap<number, string>,
): TracedCall[] {
  const byNumber = new Map<number, NativeTracedCall>();
  for (const call of records.flatMap(({ calls }) => calls)) {
    const known = byNumber.get(call.number);
    byNumber.set(
      call.number,
      known === undefined
        ? call
        : {
            number: call.number,
            count: known.count + call.count,
            errors: known.errors + call.errors,
            tookNs: known.tookNs + call.tookNs,
            blockedNs: known.blockedNs + call.blockedNs,
          },
    );
  }
  const isSplit = method === 'ebpf';
  const isTimed = method !== 'counters';
  return [...byNumber.values()].map(({ number, count, errors, tookNs, blockedNs }) => ({
    name: nameOf(number, names),
    count,
    errors,
    onCpuMs: isSplit ? (tookNs - blockedNs) / nsPerMs : null,
    blockedMs: isSplit ? blockedNs / nsPerMs : null,
    tookMs: isSplit || !isTimed ? null : tookNs / nsPerMs,
    seen: null,
  }));
}

export function foundCalls(
  seen: SeenThread | undefined,
  names: ReadonlyMap<number, string>,
): TracedCall[] {
  return [...(seen?.found ?? [])].map(([number, times]) => ({
    name: nameOf(number, names),
    count: null,
    errors: null,
    onCpuMs: null,
    blockedMs: null,
    tookMs: null,
    seen: times,
  }));
}
