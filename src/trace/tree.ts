// The traced process and all that it started, looked at again and again: which threads there are, what
// they are called, how much CPU time they have had since the trace began, and what they are found doing.
// What has ended keeps what the last look saw.

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
} from './proc.js';

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
  /** Whether it was there when the trace began. */
  readonly isOlder: boolean;
  /** Since the trace began. */
  readonly times: CpuTimes;
  readonly runNs: number;
  readonly samples: number;
  readonly running: number;
  /** By the number of the call. */
  readonly found: ReadonlyMap<number, number>;
}

interface ThreadHistory {
  readonly first: ThreadSample | undefined;
  last: ThreadSample;
  /** The number of the look that saw it last. */
  lookedAt: number;
  samples: number;
  running: number;
  readonly found: Map<number, number>;
  doing: DoingFile | undefined;
}

interface ProcessHistory {
  readonly first: ProcessSample | undefined;
  last: ProcessSample;
  identity: ProcessIdentity;
  /** The number of the look that saw it last. */
  lookedAt: number;
  /** The number of the look that missed it. */
  endedAt: number | undefined;
  readonly threads: Map<number, ThreadHistory>;
  readonly firstIo: IoCounts | undefined;
  lastIo: IoCounts | undefined;
}

export class ProcessTree {
  readonly #root: number;
  readonly #processes = new Map<number, ProcessHistory>();
  /** Those that have ended and whose number another one has got. */
  readonly #replaced: ProcessHistory[] = [];
  /** How often it was looked. */
  #looks = 0;

  /** Times count from the first look on. */
  constructor(root: number) {
    this.#root = root;
  }

  /** Whether the traced process itself still runs. */
  get isRunning(): boolean {
    return !this.hasEnded(this.#root);
  }

  /** Numbers of all processes that were seen, in the order of their start. */
  get pids(): number[] {
    return [...this.#processes.keys()];
  }

  identityOf(pid: number): ProcessIdentity | undefined {
    return this.#processes.get(pid)?.identity;
  }

  parentOf(pid: number): number | undefined {
    return this.#processes.get(pid)?.last.parentPid;
  }

  /** Whether something of it answers requests by programs of their own, as far as that was seen. */
  get hasCgi(): boolean {
    const isOfCgi = ({ identity: { args, isCgi } }: ProcessHistory): boolean =>
      isCgi || args.some((word) => word === '--cgi' || word.startsWith('--cgi='));
    return [...this.#replaced, ...this.#processes.values()].some(isOfCgi);
  }

  /** As the kernel calls it; empty for what was not seen. */
  nameOf(pid: number): string {
    return this.#processes.get(pid)?.last.name ?? '';
  }

  hasEnded(pid: number): boolean {
    const history = this.#processes.get(pid);
    return history === undefined || history.endedAt !== undefined;
  }

  /** Sees who is there, and their times. */
  look(): void {
    const running = new Set(readTree(this.#root));
    // What lost its parent still counts.
    for (const pid of this.pids) if (!this.hasEnded(pid)) running.add(pid);
    this.#looks += 1;
    for (const pid of running) this.#lookAt(pid);
  }

  get #isFirstLook(): boolean {
    return this.#looks === 1;
  }

  #lookAt(pid: number): void {
    const sample = readProcess(pid);
    const known = this.#knownAs(pid, sample);
    if (sample === undefined) {
      if (known === undefined) return;
      known.endedAt ??= this.#looks;
      for (const { doing } of known.threads.values()) doing?.close();
      return;
    }
    const history = known ?? this.#add(sample);
    history.last = sample;
    history.lookedAt = this.#looks;
    history.identity = readIdentity(pid);
    history.lastIo = readIo(pid) ?? history.lastIo;
    for (const thread of sample.threads) {
      const seen = history.threads.get(thread.tid) ?? this.#newThread(thread);
      history.threads.set(thread.tid, seen);
      seen.last = thread;
      seen.lookedAt = this.#looks;
    }
  }

  /** What is known of a process; a number that is used again is another process. */
  #knownAs(pid: number, sample: ProcessSample | undefined): ProcessHistory | undefined {
    const known = this.#processes.get(pid);
    if (known?.endedAt === undefined || sample === undefined) return known;
    this.#replaced.push(known);
    this.#processes.delete(pid);
    return undefined;
  }

  #add(sample: ProcessSample): ProcessHistory {
    const firstIo = this.#isFirstLook ? readIo(sample.pid) : { reads: 0, writes: 0 };
    const history = {
      first: this.#isFirstLook ? sample : undefined,
      last: sample,
      identity: readIdentity(sample.pid),
      lookedAt: this.#looks,
      endedAt: undefined,
      threads: new Map<number, ThreadHistory>(),
      firstIo,
      lastIo: firstIo,
    };
    this.#processes.set(sample.pid, history);
    return history;
  }

  #newThread(thread: ThreadSample): ThreadHistory {
    const first = this.#isFirstLook ? thread : undefined;
    const found = new Map<number, number>();
    const lookedAt = this.#looks;
    return { first, last: thread, lookedAt, samples: 0, running: 0, found, doing: undefined };
  }

  /** Sees what each thread does at this moment. */
  lookAtCalls(): void {
    for (const [pid, { threads, endedAt }] of this.#processes) {
      if (endedAt !== undefined) continue;
      for (const [tid, thread] of threads) {
        thread.doing ??= new DoingFile(pid, tid);
        note(thread, thread.doing.read());
      }
    }
  }

  /** Closes files; there are no looks at calls any more. */
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
      .map(([tid, { first, last, lookedAt, samples, running, found }]) => ({
        pid,
        tid,
        name: last.name,
        hasEnded: this.hasEnded(pid) || lookedAt !== history?.lookedAt,
        isOlder: first !== undefined,
        times: since(first, last),
        runNs: last.runNs - (first?.runNs ?? 0),
        samples,
        running,
        found,
      }));
  }

  /**
   * Processes whose figures make up those of the tree: what has ended and was waited for stands in the
   * figures of its parent, if that was seen since.
   */
  get #counted(): ProcessHistory[] {
    return [...this.#replaced, ...this.#processes.values()].filter(({ endedAt, last }) => {
      const parent = this.#processes.get(last.parentPid);
      return endedAt === undefined || parent === undefined || parent.lookedAt < endedAt;
    });
  }

  /** User and system time. Of what ends, the time since the look before is missing. */
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

  /** Calls that read and that write; `undefined` where nobody may know. */
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
