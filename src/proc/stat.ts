// The line that /proc has for each process and thread: proc_pid_stat(5).

import { readText } from './text.js';

/** The kernel tells times in hundredths of a second to programs (USER_HZ), on all architectures of Node. */
export const msPerTick = 10;
/** PF_KTHREAD */
const kernelThreadFlag = 0x0020_0000;

/** CPU time since its start, in ms. */
export interface CpuTimes {
  readonly userMs: number;
  readonly systemMs: number;
}

export interface Stat extends CpuTimes {
  /** The kernel cuts it to 15 characters. */
  readonly name: string;
  /** One letter: R runs or could, S sleeps, Z is a zombie, X is dead. */
  readonly state: string;
  readonly parentPid: number;
  /** True: a thread of the kernel, which no program is in. */
  readonly isOfKernel: boolean;
  /** Of children that have ended and were waited for. */
  readonly children: CpuTimes;
  /** Since the machine started. With it a number that was given again is another process. */
  readonly startMs: number;
}

/** "number (name, with any characters) state parent …" */
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

/** `folder` is that of a process or of one of its threads. */
export function readStat(folder: string): Stat | undefined {
  const text = readText(`${folder}/stat`);
  return text === undefined ? undefined : parseStat(text);
}

/** Of a process that runs: a zombie does not, it waits for nothing. */
export function runningStat(pid: number): Stat | undefined {
  const stat = readStat(`/proc/${pid}`);
  return stat === undefined || hasEnded(stat) ? undefined : stat;
}

/** Also of a process that is no child of this one. */
export function isAlive(pid: number): boolean {
  return runningStat(pid) !== undefined;
}

export function hasEnded({ state }: Pick<Stat, 'state'>): boolean {
  return state === 'Z' || state === 'X';
}
