// One trace: starts the best method that works, samples the processes while it runs, and makes the report
// when it stops. Not here: samples of a process (samples.ts), the choice of the method (methods.ts), printing.

import { cpus } from 'node:os';
import { basename } from 'node:path';
import { CodedError } from '../errors.js';
import { defer } from '../lib/index.js';
import type { NativeTracedRecord } from '../native.js';
import { type CpuTimes, findProcess, processRefused } from '../proc/index.js';
import { assembleThreads } from './assemble.js';
import { isHeld, type TracedCommand } from './command.js';
import { type ChosenMethod, chooseMethod, pidNamespace, type TraceMethod } from './methods.js';
import { notesOn } from './notes.js';
import type { PreloadReading } from './preload.js';
import { ProcessTree } from './process-tree.js';
import {
  joinCalls,
  joinRoles,
  type MachineShares,
  type TracedThread,
  type TraceReport,
} from './report.js';
import { isNode } from './roles.js';
import { childrenTimes, type MachineTimes, readIo, readMachine } from './samples.js';
import { othersRole } from './shared-records.js';

/** Period of thread samples. */
const tickMs = 100;
/** Ticks between two scans for processes: fewer at first, for programs that end soon. */
const ticksPerScan = { first: 2, later: 10 } as const;
const firstTicks = 20;
/** Ticks between two measurements of the kernel programs' own time, which cost time as well. */
const ticksPerOwnTime = 20;
const ownTimeMs = 50;
/** Cells of thread and call, equal to `MAX_CELLS` in crates/core/src/sys/linux_raw_trace.rs. */
const maxRawCells = 65_536;

export interface TraceOptions {
  /** Default: the best that works. */
  readonly method?: TraceMethod | undefined;
  /** Set when the process is a command that is held back. */
  readonly command?: TracedCommand | undefined;
}

/**
 * Traces a process and all its children from now on. Throws `PROCESS_GONE`, `PROCESS_REFUSED` and
 * `TRACE_UNAVAILABLE`.
 */
export function startTrace(pid: number, options: TraceOptions = {}): Trace {
  checkTarget(pid);
  const tree = new ProcessTree(pid);
  tree.scan();
  // Programs whose threads are counted separately when they are started as children.
  const programs = [...new Set(['node', basename(process.execPath)])];
  return new Trace(pid, options, tree, chooseMethod(options.method, tree.pids, programs));
}

function checkTarget(pid: number): void {
  if (process.platform !== 'linux') {
    const message = `${process.platform} cannot count the system calls of a program: trace on Linux`;
    throw new CodedError('TRACE_UNAVAILABLE', message);
  }
  const seen = findProcess(pid);
  // Readable I/O counts prove permission, unless the kernel counts them for no process.
  if (readIo(pid) === undefined && readIo(process.pid) !== undefined) throw processRefused(seen);
}

export class Trace {
  readonly method: TraceMethod;
  readonly #pid: number;
  readonly #command: TracedCommand | undefined;
  readonly #tree: ProcessTree;
  readonly #chosen: ChosenMethod;
  readonly #begunMs = performance.now();
  readonly #machine: MachineTimes = readMachine();
  readonly #ownCpu = process.cpuUsage();
  readonly #children: CpuTimes = childrenTimes();
  readonly #timer: NodeJS.Timeout;
  readonly #gone = defer<void>();
  readonly #followed: Set<number>;
  /** Followed processes that have ended. */
  readonly #left = new Set<number>();
  #refused = 0;
  #ticks = 0;
  #ownTimer: NodeJS.Timeout | undefined;
  #ownTime: { ns: number; ms: number } | undefined;
  #report: TraceReport | undefined;

  /** Called by `startTrace`. */
  constructor(pid: number, { command }: TraceOptions, tree: ProcessTree, chosen: ChosenMethod) {
    this.method = chosen.method;
    this.#pid = pid;
    this.#command = command;
    this.#tree = tree;
    this.#chosen = chosen;
    this.#followed = new Set(tree.pids);
    this.#timer = setInterval(() => this.#tick(), tickMs);
    // Includes processes started between the first scan and the first count.
    do tree.scan();
    while (this.#followNew() > 0);
  }

  /** Resolves when the traced process has ended. */
  get ended(): Promise<void> {
    return this.#gone.promise;
  }

  /** Numbers of all processes seen so far. */
  get pids(): number[] {
    return this.#tree.pids;
  }

  /** Numbers of the processes that ran at the last scan; `stop` makes one. */
  get running(): number[] {
    return this.#tree.pids.filter((pid) => !this.#tree.hasEnded(pid));
  }

  #tick(): void {
    this.#ticks += 1;
    if (this.#chosen.tracer === undefined) this.#tree.sampleCalls();
    const { first, later } = ticksPerScan;
    if (this.#ticks % (this.#ticks < firstTicks ? first : later) === 0) this.#scan();
    if (this.#ticks % ticksPerOwnTime === 1) this.#takeOwnTime();
  }

  #scan(): void {
    this.#tree.scan();
    if (!this.#tree.isRunning) this.#gone.resolve();
    this.#leaveEnded();
    // The compiled program follows new processes by itself.
    if (this.method === 'raw') this.#followNew();
  }

  /** Returns how many were added. A reused number counts as new. */
  #followNew(): number {
    const isNew = (pid: number): boolean =>
      !this.#followed.has(pid) || (this.#left.has(pid) && !this.#tree.hasEnded(pid));
    const fresh = this.#tree.pids.filter(isNew);
    for (const pid of fresh) {
      this.#followed.add(pid);
      this.#left.delete(pid);
      try {
        this.#chosen.tracer?.follow(pid);
      } catch {
        this.#refused += 1;
      }
    }
    return fresh.length;
  }

  /** Unfollows ended processes, whose numbers may be reused. */
  #leaveEnded(): void {
    for (const pid of this.#followed) {
      if (this.#left.has(pid) || !this.#tree.hasEnded(pid)) continue;
      this.#left.add(pid);
      this.#chosen.tracer?.unfollow(pid);
    }
  }

  /** Measures briefly, now and then. Without root there is no such number. */
  #takeOwnTime(): void {
    const { tracer } = this.#chosen;
    if (tracer === undefined || this.#ownTimer !== undefined) return;
    const before = tracer.ownTimeNs();
    const begun = performance.now();
    try {
      tracer.takeOwnTime(true);
    } catch {
      return;
    }
    this.#ownTimer = setTimeout(() => {
      this.#ownTimer = undefined;
      tracer.takeOwnTime(false);
      const known = this.#ownTime ?? { ns: 0, ms: 0 };
      const ns = known.ns + tracer.ownTimeNs() - before;
      this.#ownTime = { ns, ms: known.ms + performance.now() - begun };
    }, ownTimeMs);
  }

  /** Ends the trace and returns its report; every call returns the same one. */
  stop(): TraceReport {
    this.#report ??= this.#makeReport();
    return this.#report;
  }

  #makeReport(): TraceReport {
    clearInterval(this.#timer);
    clearTimeout(this.#ownTimer);
    const { tracer, method, missing } = this.#chosen;
    const inside = this.#command?.counts?.read();
    this.#command?.close();
    const records = tracer?.read() ?? inside?.records ?? [];
    const tookMs = performance.now() - this.#begunMs;
    const machine = sharesOf(this.#machine, readMachine());
    this.#tree.scan();
    this.#tree.close();
    const io = this.#tree.io();
    tracer?.close();
    const root = this.#identity();
    const threads = assembleThreads({
      method,
      tree: this.#tree,
      records: this.#ownRecords(records),
      root,
      followed: this.#followed,
    });
    const own = process.cpuUsage(this.#ownCpu);
    const byTicks = this.#ticksOfProgram();
    const total = (part: 'userMs' | 'systemMs'): number =>
      threads.reduce((sum, thread) => sum + thread[part], 0);
    const byCalls = { userMs: total('userMs'), systemMs: total('systemMs'), by: 'calls' as const };
    return {
      method,
      missing,
      tookMs,
      pid: this.#pid,
      command: root.args.join(' ').trim(),
      isNode: isNode(root),
      machine,
      program: {
        ...(method === 'ebpf' ? byCalls : { ...byTicks, by: 'ticks' as const }),
        reads: io?.reads ?? null,
        writes: io?.writes ?? null,
      },
      calls: joinCalls(threads.map(({ calls }) => calls)),
      roles: joinRoles(threads),
      threads,
      overhead: {
        kernelShare: this.#ownTime === undefined ? null : this.#ownTime.ns / 1e6 / this.#ownTime.ms,
        processShare: (own.user + own.system) / 1000 / tookMs,
      },
      notes: this.#notes(isNode(root), threads, inside, method === 'raw' && areFull(records)),
    };
  }

  /** Returns the records of a command without those of the shell that held it back. */
  #ownRecords(records: readonly NativeTracedRecord[]): readonly NativeTracedRecord[] {
    if (this.#command === undefined || this.method === 'raw') return records;
    const shell = records.findIndex(({ tid }) => tid === this.#pid);
    return records.filter((_, at) => at !== shell);
  }

  #identity() {
    const seen = this.#tree.identityOf(this.#pid);
    const command = this.#command;
    const isSeen = seen !== undefined && !isHeld(seen) && seen.args[0] !== '';
    const unseen = { pid: this.#pid, args: [], program: '', isCgi: false };
    if (isSeen || command === undefined) return seen ?? unseen;
    // It ended before the first scan.
    return { ...unseen, args: command.args, program: basename(command.args[0] ?? '') };
  }

  /** Returns the times of the command, for which this process has waited, with all its children. */
  #ticksOfProgram(): CpuTimes {
    if (this.#command === undefined || this.#tree.isRunning) return this.#tree.times();
    const { userMs, systemMs } = childrenTimes();
    return {
      userMs: userMs - this.#children.userMs,
      systemMs: systemMs - this.#children.systemMs,
    };
  }

  #notes(
    isRootNode: boolean,
    threads: readonly TracedThread[],
    inside: PreloadReading | undefined,
    isFull: boolean,
  ): string[] {
    const { calls, requests } = this.#command?.counting ?? {};
    const uncounted = typeof calls === 'string' ? calls : inside?.problem;
    const other = pidNamespace(this.#pid);
    return notesOn({
      method: this.method,
      isNode: isRootNode,
      isElsewhere: other !== '' && other !== pidNamespace(),
      endedPid: this.#command === undefined && !this.#tree.isRunning ? this.#pid : undefined,
      isCountedInside: typeof calls === 'object' && uncounted === undefined,
      uncounted,
      uncountedRequests: typeof requests === 'string' ? requests : undefined,
      lost: inside?.lost ?? 0,
      isFull,
      hasOthers: threads.some(({ role }) => role === othersRole),
      refusedProcesses: this.#refused,
    });
  }
}

/** Returns true when the assembled programs have used all their cells. */
function areFull(records: readonly NativeTracedRecord[]): boolean {
  return records.reduce((cells, { calls }) => cells + calls.length, 0) >= maxRawCells;
}

function sharesOf(before: MachineTimes, after: MachineTimes): MachineShares {
  const delta = {
    user: after.userMs - before.userMs,
    system: after.systemMs - before.systemMs,
    softInterrupt: after.softInterruptMs - before.softInterruptMs,
    idle: after.idleMs - before.idleMs,
    other: after.otherMs - before.otherMs,
  };
  const all = Math.max(
    1,
    Object.values(delta).reduce((total, each) => total + each, 0),
  );
  return {
    cores: cpus().length,
    user: delta.user / all,
    system: delta.system / all,
    softInterrupt: delta.softInterrupt / all,
    idle: delta.idle / all,
    other: delta.other / all,
  };
}
