// Samples of /proc: a process, its threads, and the machine. Programs of the same user need no permission.
// Not here: changes over time (process-tree.ts).

import { closeSync, openSync, readlinkSync, readSync } from 'node:fs';
import { basename } from 'node:path';
import {
  type CpuTimes,
  hasEnded,
  msPerTick,
  readStat,
  readText,
  textOf,
  threadsOf,
} from '../proc/index.js';

export interface ThreadSample extends CpuTimes {
  readonly tid: number;
  readonly name: string;
  /** More exact than the sum of `userMs` and `systemMs`, in ns. */
  readonly runNs: number;
}

export interface ProcessSample extends CpuTimes {
  /** True: its first thread has ended, so that its command line is gone. */
  readonly isEnding: boolean;
  readonly pid: number;
  readonly parentPid: number;
  readonly name: string;
  /** CPU time of children that have ended and were waited for. */
  readonly children: CpuTimes;
  readonly threads: readonly ThreadSample[];
}

/** Identity of a process: it changes at most once, when it executes another program. */
export interface ProcessIdentity {
  readonly pid: number;
  readonly args: readonly string[];
  /** File name of its program; empty when it belongs to another user. */
  readonly program: string;
  /** True: it runs to answer one request of a server (RFC 3875, 4.1.4). */
  readonly isCgi: boolean;
}

/** Times of all cores together since the start of the machine, in ms. */
export interface MachineTimes {
  readonly userMs: number;
  readonly systemMs: number;
  readonly softInterruptMs: number;
  readonly idleMs: number;
  /** Interrupts, and time taken by other virtual machines. */
  readonly otherMs: number;
}

/** Activity of a thread at a moment. */
export type Doing = 'running' | 'unknown' | { readonly call: number };

function readThread(pid: number, tid: number): ThreadSample | undefined {
  const folder = `/proc/${pid}/task/${tid}`;
  const stat = readStat(folder);
  if (stat === undefined) return undefined;
  const { name, userMs, systemMs } = stat;
  const runNs = Number(textOf(`${folder}/schedstat`).split(' ')[0]);
  return { tid, name, userMs, systemMs, runNs };
}

/** Returns `undefined` for a process that has ended, with all its threads. */
export function readProcess(pid: number): ProcessSample | undefined {
  const stat = readStat(`/proc/${pid}`);
  if (stat === undefined) return undefined;
  const { name, parentPid, userMs, systemMs, children } = stat;
  const tids = threadsOf(pid);
  // The first thread of a killed process is a zombie while others wait for a core, to end.
  const isEnding = hasEnded(stat);
  if (isEnding && !tids.some((tid) => tid !== pid)) return undefined;
  const threads = tids.flatMap((tid) => readThread(pid, tid) ?? []);
  return { pid, parentPid, name, userMs, systemMs, children, threads, isEnding };
}

/** Returns the CPU time of waited-for children of this process. */
export function childrenTimes(): CpuTimes {
  return readStat('/proc/self')?.children ?? { userMs: 0, systemMs: 0 };
}

export function readIdentity(pid: number): ProcessIdentity {
  // Node writes a title over its arguments, padded with spaces.
  const text = textOf(`/proc/${pid}/cmdline`).replace(/[ \0]+$/, '');
  let program = '';
  try {
    program = basename(readlinkSync(`/proc/${pid}/exe`)).replace(/ \(deleted\)$/, '');
  } catch {
    // it belongs to another user, or has ended
  }
  const isCgi = textOf(`/proc/${pid}/environ`).includes('GATEWAY_INTERFACE=CGI/');
  return { pid, args: text.split('\0'), program, isCgi };
}

export function readMachine(): MachineTimes {
  const line = textOf('/proc/stat').split('\n', 1)[0] ?? '';
  const ms = line
    .split(/\s+/)
    .slice(1)
    .map((ticks) => Number(ticks) * msPerTick);
  const [
    user = 0,
    nice = 0,
    system = 0,
    idle = 0,
    waiting = 0,
    interrupt = 0,
    soft = 0,
    stolen = 0,
  ] = ms;
  return {
    userMs: user + nice,
    systemMs: system,
    softInterruptMs: soft,
    idleMs: idle + waiting,
    otherMs: interrupt + stolen,
  };
}

/** Repeated samples of a thread's activity: the file stays open, because opening costs more than reading. */
export class DoingFile {
  readonly #bytes = Buffer.alloc(16);
  #fd: number | undefined;

  constructor(pid: number, tid: number) {
    try {
      this.#fd = openSync(`/proc/${pid}/task/${tid}/syscall`, 'r');
    } catch {
      // it has ended, or belongs to another user
    }
  }

  /** Returns `unknown` for ended threads, and those of other users. */
  read(): Doing {
    if (this.#fd === undefined) return 'unknown';
    try {
      const text = this.#bytes.toString('latin1', 0, readSync(this.#fd, this.#bytes, 0, 16, 0));
      if (text.startsWith('running')) return 'running';
      const call = Number.parseInt(text, 10);
      return call >= 0 ? { call } : 'unknown';
    } catch {
      this.close();
      return 'unknown';
    }
  }

  close(): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
  }
}

/** Read and write calls so far. */
export interface IoCounts {
  readonly reads: number;
  readonly writes: number;
}

/** Returns `undefined` for processes of other users. */
export function readIo(pid: number): IoCounts | undefined {
  const text = readText(`/proc/${pid}/io`);
  if (text === undefined) return undefined;
  const countOf = (name: string): number =>
    Number(new RegExp(`^${name}: (\\d+)`, 'm').exec(text)?.[1] ?? 0);
  return { reads: countOf('syscr'), writes: countOf('syscw') };
}
