// What this machine's /proc says about processes and descriptors: what the checks for leaks read.
// Everything is empty where there is no /proc, so those checks pass there without checking. And limits
// of processes.
// Not here: waiting until something is gone (wait.ts).

import { execFileSync, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

export interface ProcessInfo {
  readonly pid: number;
  readonly parentPid: number;
  readonly commandLine: string;
}

/** Processes that run (zombies do not) and for which `matches` says true. */
function findProcesses(matches: (pid: number, parentPid: number) => boolean): ProcessInfo[] {
  const found: ProcessInfo[] = [];
  for (const name of list('/proc')) {
    const pid = Number(name);
    if (!Number.isInteger(pid)) continue;
    // "pid (command, with any characters) state parent ..."
    const stat = read(`/proc/${pid}/stat`);
    const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (state === undefined || state === 'Z' || state === 'X') continue;
    const parentPid = Number(parent);
    if (!matches(pid, parentPid)) continue;
    const commandLine = read(`/proc/${pid}/cmdline`).replaceAll('\0', ' ').trim();
    found.push({ pid, parentPid, commandLine });
  }
  return found;
}

/** Children of `parentPid` that run. */
export function childrenOf(parentPid: number): ProcessInfo[] {
  return findProcesses((_pid, parent) => parent === parentPid);
}

/** Whether `pid` is there and runs; a zombie does not. */
export function isRunning(pid: number): boolean {
  return findProcesses((each) => each === pid).length > 0;
}

/** What each open descriptor of this process points to, without the numbers of sockets and pipes. */
export function openDescriptors(): string[] {
  return list('/proc/self/fd')
    .map((fd) => readLink(`/proc/self/fd/${fd}`).replace(/:\[\d+\]$/, ''))
    .filter((target) => target !== '');
}

/** Named shared memory of ours. */
export function sharedMemoryObjects(): string[] {
  return list('/dev/shm').filter((name) => name.includes('manycore'));
}

// A process may leave between two reads: what cannot be read is empty.
function list(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

function readLink(file: string): string {
  try {
    return readlinkSync(file);
  } catch {
    return '';
  }
}

/** Why `limit` cannot be used here; `false` when it can. */
export const noLimits =
  spawnSync('prlimit', ['--version']).error !== undefined && 'there is no prlimit (util-linux)';

/** Sets limits of a process of user `uid` that runs, as prlimit(1) takes them: `--nofile=3:`. */
export function limit(pid: number, limits: string, uid?: number): void {
  execFileSync('prlimit', [`--pid=${pid}`, limits], uid === undefined ? {} : { uid, gid: uid });
}
