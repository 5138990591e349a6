// The traced process and its descendants, scanned repeatedly: threads, their names, CPU time since the
// start of the trace, and the calls in which they are found. Ended ones keep the values of the last scan.

import { byStart, type CpuTimes, readTree } from '../proc/index.js';
import {
  type Doing,
  DoingFile,
  type IoCounts,
  type ProcessIdentity,
  type ProcessSample,
  readIdentity,
  readIo,
  readProcess,
  type ThreadSample,
} from './samples.js';

/** Calls in which an event loop waits: epoll_wait, epoll_pwait, epoll_pwait2. */
export const eventCalls: ReadonlySet<string> = new Set([
  'epoll_wait',
  'epoll_pwait',
  'epoll_pwait2',
]);

export interface SeenThread {
  readonly pid: number;
  readonly tid: number;
  readonly name: string;
  readonly hasEnded: boolean;
  /** CPU time since the trace began. */
  readonly times: CpuTimes;
  readonly runNs: number;
  /** CPU time before the trace began. */
  readonly runBeforeNs: number;
  readonly samples: number;
  readonly running: number;
  /** Samples by the number of the call. */
  readonly found: ReadonlyMap<number, number>;
}

interface ThreadHistory {
  readonly first: ThreadSample | undefined;
  last: ThreadSample;
  /** Number of the last scan that found it. */
  scannedAt: number;
  samples: number;
  running: number;
  readonly found: Map<number, number>;
  doing: DoingFile | undefined;
}

interface ProcessHistory {
  readonly first: ProcessSample | undefined;
  last: ProcessSample;
  identity: ProcessIdentity;
  /** Number of the last scan that found it. */
  scannedAt: number;
  /** Number of the scan that missed it. */
  endedAt: number | undefined;
  readonly threads: Map<number, ThreadHistory>;
  readonly firstIo: IoCounts | undefined;
  lastIo: IoCounts | undefined;
}

export class ProcessTree {
  readonly #root: number;
  readonly #processes = new Map<number, ProcessHistory>();
  /** Ended processes whose numbers were reused. */
  readonly #replaced: ProcessHistory[] = [];
  /** Number of scans. */
  #scans = 0;

  /** Times count from the first scan on. */
  constructor(root: number) {
    this.#root = root;
  }

  /** True while the traced process itself runs. */
  get isRunning(): boolean {
    return !this.hasEnded(this.#root);
  }

  /** Numbers of all processes seen, in the order of their start. */
  get pids(): number[] {
    return [...this.#processes.keys()];
  }

  identityOf(pid: number): ProcessIdentity | undefined {
    return this.#processes.get(pid)?.identity;
  }

  parentOf(pid: number): number | undefined {
    return this.#processes.get(pid)?.last.parentPid;
  }

  /** True: a process answers requests by starting programs (CGI), as far as that was seen. */
  get hasCgi(): boolean {
    const isOfCgi = ({ identity: { args, isCgi } }: ProcessHistory): boolean =>
      isCgi || args.some((word) => word === '--cgi' || word.startsWith('--cgi='));
    return [...this.#replaced, ...this.#processes.values()].some(isOfCgi);
  }

  /** Returns the kernel's name of it; empty for an unseen process. */
  nameOf(pid: number): string {
    return this.#processes.get(pid)?.last.name ?? '';
  }

  hasEnded(pid: number): boolean {
    const history = this.#processes.get(pid);
    return history === undefined || history.endedAt !== undefined;
  }

  /** Records the present processes and their times. */
  scan(): void {
    const running = new Set(readTree(this.#root));
    // Processes that lost their parent still count.
    for (const pid of this.pids) if (!this.hasEnded(pid)) running.add(pid);
    this.#scans += 1;
    for (const pid of running) this.#visit(pid);
  }

  get #isFirstScan(): boolean {
    return this.#scans === 1;
  }

  #visit(pid: number): void {
    const sample = readProcess(pid);
    const known = this.#knownAs(pid, sample);
    if (sample === undefined) {
      if (known === undefined) return;
      known.endedAt ??= this.#scans;
      for (const { doing } of known.threads.values()) doing?.close();
      return;
    }
    const history = known ?? this.#add(sample);
    history.last = sample;
    history.scannedAt = this.#scans;
    if (!sample.isEnding) history.identity = readIdentity(pid);
    history.lastIo = readIo(pid) ?? history.lastIo;
    for (const thread of sample.threads) {
      const seen = history.threads.get(thread.tid) ?? this.#newThread(thread);
      history.threads.set(thread.tid, seen);
      seen.last = thread;
      seen.scannedAt = this.#scans;
    }
  }

  /** Returns the entry of a process; a reused number belongs to another process. */
  #knownAs(pid: number, sample: ProcessSample | undefined): ProcessHistory | undefined {
    const known = this.#processes.get(pid);
    if (known?.endedAt === undefined || sample === undefined) return known;
    this.#replaced.push(known);
    this.#processes.delete(pid);
    return undefined;
  }

  #add(sample: ProcessSample): ProcessHistory {
    const firstIo = this.#isFirstScan ? readIo(sample.pid) : { reads: 0, writes: 0 };
    const history = {
      first: this.#isFirstScan ? sample : undefined,
      last: sample,
      identity: readIdentity(sample.pid),
      scannedAt: this.#scans,
      endedAt: undefined,
      threads: new Map<number, ThreadHistory>(),
      firstIo,
      lastIo: firstIo,
    };
    this.#processes.set(sample.pid, history);
    return history;
  }

  #newThread(thread: ThreadSample): ThreadHistory {
    const first = this.#isFirstScan ? thread : undefined;
    const found = new Map<number, number>();
    const scannedAt = this.#scans;
    return { first, last: thread, scannedAt, samples: 0, running: 0, found, doing: undefined };
  }

  /** Records the present call of each thread. */
  sampleCalls(): void {
    for (const [pid, { threads, endedAt }] of this.#processes) {
      if (endedAt !== undefined) continue;
      for (const [tid, thread] of threads) {
        thread.doing ??= new DoingFile(pid, tid);
        note(thread, thread.doing.read());
      }
    }
  }

  /** Closes the files; calls are sampled no more. */
  close(): void {
    for (const { threads } of this.#processes.values()) {
      for (const { doing } of threads.values()) doing?.close();
    }
  }

  threadsOf(pid: number): SeenThread[] {
    const history = this.#processes.get(pid);
    const order = byStart(pid);
    return [...(history?.threads ?? [])]
      .sort(([a], [b]) => order(a, b))
      .map(([tid, { first, last, scannedAt, samples, running, found }]) => ({
        pid,
        tid,
        name: last.name,
        hasEnded: this.hasEnded(pid) || scannedAt !== history?.scannedAt,
        times: since(first, last),
        runNs: last.runNs - (first?.runNs ?? 0),
        runBeforeNs: first?.runNs ?? 0,
        samples,
        running,
        found,
      }));
  }

  /**
   * Returns the processes whose values make up those of the tree. Ended and waited-for children are
   * included in their parent's values, if the parent was scanned since.
   */
  get #counted(): ProcessHistory[] {
    return [...this.#replaced, ...this.#processes.values()].filter(({ endedAt, last }) => {
      const parent = this.#processes.get(last.parentPid);
      return endedAt === undefined || parent === undefined || parent.scannedAt < endedAt;
    });
  }

  /** Returns user and system time; the time of a process after its last scan is missing. */
  times(): CpuTimes {
    const parts = this.#counted.flatMap(({ first, last }) => [
      since(first, last),
      since(first?.children, last.children),
    ]);
    return parts.reduce(
      (total, each) => ({
        userMs: total.userMs + each.userMs,
        systemMs: total.systemMs + each.systemMs,
      }),
      { userMs: 0, systemMs: 0 },
    );
  }

  /** Returns read and write calls; `undefined` without permission. */
  io(): IoCounts | undefined {
    const known = this.#counted.flatMap(({ firstIo, lastIo }) =>
      firstIo === undefined || lastIo === undefined
        ? []
        : [{ reads: lastIo.reads - firstIo.reads, writes: lastIo.writes - firstIo.writes }],
    );
    if (known.length === 0) return undefined;
    return known.reduce((total, { reads, writes }) => ({
      reads: total.reads + reads,
      writes: total.writes + writes,
    }));
  }
}

function since(first: CpuTimes | undefined, last: CpuTimes): CpuTimes {
  return {
    userMs: last.userMs - (first?.userMs ?? 0),
    systemMs: last.systemMs - (first?.systemMs ?? 0),
  };
}

function note(thread: ThreadHistory, doing: Doing): void {
  if (doing === 'unknown') return;
  thread.samples += 1;
  if (doing === 'running') thread.running += 1;
  else thread.found.set(doing.call, (thread.found.get(doing.call) ?? 0) + 1);
}
