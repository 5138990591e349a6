// What a trace found, as plain data: what `manycore trace --json` prints, and so API. Times are in ms.
// Not here: how it is counted (trace.ts), how it is shown (the command line).

import type { MissingMethod, TraceMethod } from './methods.js';

/** One system call. What the way of tracing does not see is `null`. */
export interface TracedCall {
  readonly name: string;
  readonly count: number | null;
  readonly errors: number | null;
  /** In calls that returned. */
  readonly onCpuMs: number | null;
  /** In calls that returned: off the CPU, because they waited or another thread was on it. */
  readonly blockedMs: number | null;
  /** Both together, where they cannot be told apart. */
  readonly tookMs: number | null;
  /** How often a thread was found in it, of `samples` of the thread. */
  readonly seen: number | null;
}

/** A thread, or with `tid` 0 all child processes that run one program. */
export interface TracedThread {
  readonly pid: number;
  readonly tid: number;
  readonly role: string;
  readonly name: string;
  readonly hasEnded: boolean;
  /** Threads or processes that counted into this one: more than 1 for child processes. */
  readonly tasks: number;
  readonly userMs: number;
  readonly systemMs: number;
  /** How often it was looked at; `running` of these times it had the CPU, or waited for it. */
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

/** Shares of all cores' time, 0 to 1. */
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
  /** `calls`: system time is what was spent in calls. `ticks`: as the kernel's clock guessed it. */
  readonly program: {
    readonly userMs: number;
    readonly systemMs: number;
    readonly by: 'calls' | 'ticks';
    /** Calls that read and that write; `null` where the kernel hides it. */
    readonly reads: number | null;
    readonly writes: number | null;
  };
  /** Over all threads, most CPU time first. */
  readonly calls: readonly TracedCall[];
  readonly roles: readonly TracedRole[];
  readonly threads: readonly TracedThread[];
  readonly overhead: {
    /** The share of one core that the programs in the kernel took; `null` where it was not measured. */
    readonly kernelShare: number | null;
    /** The share of one core that this process took. */
    readonly processShare: number;
  };
  readonly notes: readonly string[];
}

function sum(a: number | null, b: number | null): number | null {
  return a === null && b === null ? null : (a ?? 0) + (b ?? 0);
}

/** The same calls of several threads as one, those that cost most first. */
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

/** Threads by role, most CPU time first. */
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
