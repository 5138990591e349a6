// Counts of the kernel as calls and times of a report, and the material of a report. Not here: the
// assignment of records to lines (assemble.ts, shared-records.ts).

import type { NativeTracedCall, NativeTracedRecord } from '../native.js';
import type { TraceMethod } from './methods.js';
import type { ProcessTree, SeenThread } from './process-tree.js';
import type { TracedCall } from './report.js';
import type { ProcessIdentity } from './samples.js';

const nsPerMs = 1_000_000;

export interface Material {
  readonly method: TraceMethod;
  readonly tree: ProcessTree;
  /** Counts of the kernel; with `counters` those of a library in the command. */
  readonly records: readonly NativeTracedRecord[];
  /** Identity of the traced process. */
  readonly root: ProcessIdentity;
  /** Processes that were followed by number: their threads have lines of their own. */
  readonly followed: ReadonlySet<number>;
}

/** One thread, with a record for each program that it has run. */
export interface Joined {
  readonly pid: number;
  readonly tid: number;
  readonly seen: SeenThread | undefined;
  readonly records: readonly NativeTracedRecord[];
}

/** Returns time in calls as system time, and all other CPU time as user time. */
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
