// The `stat` line of a process or thread: proc_pid_stat(5).

import { readText } from './text.js';

/** One tick (USER_HZ) is 10 ms on all architectures of Node. */
export const msPerTick = 10;
/** PF_KTHREAD */
const kernelThreadFlag = 0x0020_0000;

/** CPU time since its start, in ms. */
export interface CpuTimes {
  readonly userMs: number;
  readonly systemMs: number;
}

export interface Stat extends CpuTimes {
  /** At most 15 characters: the kernel cuts the rest. */
  readonly name: string;
  /** One letter: R running or runnable, S sleeping, Z zombie, X dead. */
  readonly state: string;
  readonly parentPid: number;
  /** True: a kernel thread, which runs no program. */
  readonly isOfKernel: boolean;
  /** CPU times of children that have ended and were waited for. */
  readonly children: CpuTimes;
  /** Start time in ms since boot. It distinguishes processes that got the same number. */
  readonly startMs: number;
}

/** Parses "pid (name, with any characters) state parent …". */
export function parseStat(text: string): Stat {
  const nameEnd = text.lastIndexOf(')');
  const fields = text.slice(nameEnd + 2).split(' ');
  const ms = (at: number): number => Number(fields[at] ?? 0) * msPerTick;
  return {
    name: text.slice(text.indexOf('(') + 1, nameEnd),
    state: fields[0] ?? '',
    parentPid: Number(fields[1] ?? 0),
    isOfKernel: (Number(fields[6] ?? 0) & kernelThreadFlag) !== 0,
    userMs: ms(11),
    systemMs: ms(12),
    children: { userMs: ms(13), systemMs: ms(14) },
    startMs: ms(19),
  };
}

/** Reads the line in `folder`, of a process or of one of its threads; `undefined`: it is gone. */
export function readStat(folder: string): Stat | undefined {
  const text = readText(`${folder}/stat`);
  return text === undefined ? undefined : parseStat(text);
}

/** The line of a live process; `undefined` for a zombie. */
export function runningStat(pid: number): Stat | undefined {
  const stat = readStat(`/proc/${pid}`);
  return stat === undefined || hasEnded(stat) ? undefined : stat;
}

/** True: the process exists and is no zombie. It need not be a child of this one. */
export function isAlive(pid: number): boolean {
  return runningStat(pid) !== undefined;
}

export function hasEnded({ state }: Pick<Stat, 'state'>): boolean {
  return state === 'Z' || state === 'X';
}
