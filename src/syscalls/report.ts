// The result of a trace as plain data. `manycore trace --json` prints it, so it is API. Times are in ms.
// Not here: counting (trace.ts), the text for a terminal (the command line).

import type { MissingMethod, TraceMethod } from './methods.js';

/** One system call. Values that the method cannot measure are `null`. */
export interface TracedCall {
  readonly name: string;
  readonly count: number | null;
  readonly errors: number | null;
  /** CPU time in calls that returned. */
  readonly onCpuMs: number | null;
  /** Time off the CPU in calls that returned: waiting, or while another thread had it. */
  readonly blockedMs: number | null;
  /** Sum of both, where they cannot be separated. */
  readonly tookMs: number | null;
  /** Samples in which a thread was in this call, of all its `samples`. */
  readonly seen: number | null;
}

/** A thread, or with `tid` 0 all child processes that run one program. */
export interface TracedThread {
  readonly pid: number;
  readonly tid: number;
  readonly role: string;
  readonly name: string;
  readonly hasEnded: boolean;
  /** Number of threads or processes counted here: more than 1 for child processes. */
  readonly tasks: number;
  readonly userMs: number;
  readonly systemMs: number;
  /** Number of samples; in `running` of them it had the CPU, or waited for it. */
  readonly samples: number | null;
  readonly running: number | null;
  readonly calls: readonly TracedCall[];
}

/** All threads of one role. */
export interface TracedRole {
  readonly role: string;
  readonly threads: number;
  readonly userMs: number;
  readonly systemMs: number;
  readonly calls: readonly TracedCall[];
}

/** Shares of the time of all cores, 0 to 1. */
export interface MachineShares {
  readonly cores: number;
  readonly user: number;
  readonly system: number;
  readonly softInterrupt: number;
  readonly idle: number;
  readonly other: number;
}

export interface TraceReport {
  readonly method: TraceMethod;
  readonly missing: readonly MissingMethod[];
  readonly tookMs: number;
  readonly pid: number;
  readonly command: string;
  readonly isNode: boolean;
  readonly machine: MachineShares;
  /** `calls`: system time is time in calls. `ticks`: estimated by the kernel's clock. */
  readonly program: {
    readonly userMs: number;
    readonly systemMs: number;
    readonly by: 'calls' | 'ticks';
    /** Read and write calls; `null` where the kernel hides them. */
    readonly reads: number | null;
    readonly writes: number | null;
  };
  /** Calls of all threads, most CPU time first. */
  readonly calls: readonly TracedCall[];
  readonly roles: readonly TracedRole[];
  readonly threads: readonly TracedThread[];
  readonly overhead: {
    /** Share of one core taken by the programs in the kernel; `null` without a measurement. */
    readonly kernelShare: number | null;
    /** Share of one core taken by this process. */
    readonly processShare: number;
  };
  readonly notes: readonly string[];
}

function sum(a: number | null, b: number | null): number | null {
  return a === null && b === null ? null : (a ?? 0) + (b ?? 0);
}

/** Merges equal calls of several threads, the most expensive first. */
export function joinCalls(lists: readonly (readonly TracedCall[])[]): TracedCall[] {
  const joined = new Map<string, TracedCall>();
  for (const call of lists.flat()) {
    const known = joined.get(call.name);
    if (known === undefined) joined.set(call.name, call);
    else {
      joined.set(call.name, {
        name: call.name,
        count: sum(known.count, call.count),
        errors: sum(known.errors, call.errors),
        onCpuMs: sum(known.onCpuMs, call.onCpuMs),
        blockedMs: sum(known.blockedMs, call.blockedMs),
        tookMs: sum(known.tookMs, call.tookMs),
        seen: sum(known.seen, call.seen),
      });
    }
  }
  const weight = ({ onCpuMs, count, seen }: TracedCall) => [onCpuMs ?? 0, seen ?? 0, count ?? 0];
  return [...joined.values()].sort((a, b) => {
    const [left, right] = [weight(a), weight(b)];
    const at = left.findIndex((each, index) => each !== right[index]);
    return at < 0 ? 0 : (right[at] ?? 0) - (left[at] ?? 0);
  });
}

/** Groups threads by role, most CPU time first. */
export function joinRoles(threads: readonly TracedThread[]): TracedRole[] {
  const roles = [...groupByRole(threads)].map(([role, members]) => ({
    role,
    threads: members.reduce((total, { tasks }) => total + tasks, 0),
    userMs: members.reduce((total, { userMs }) => total + userMs, 0),
    systemMs: members.reduce((total, { systemMs }) => total + systemMs, 0),
    calls: joinCalls(members.map(({ calls }) => calls)),
  }));
  return roles.sort((a, b) => b.userMs + b.systemMs - a.userMs - a.systemMs);
}

function groupByRole(threads: readonly TracedThread[]): Map<string, TracedThread[]> {
  const groups = new Map<string, TracedThread[]>();
  for (const thread of threads) {
    groups.set(thread.role, [...(groups.get(thread.role) ?? []), thread]);
  }
  return groups;
}
