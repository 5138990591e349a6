// Reads processes and descriptors from this machine's /proc, for the checks for leaks. Everything is empty
// without a /proc, so those checks pass there without checking. Also sets limits of processes.
// Not here: waiting until something is gone (wait.ts).

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

export interface ProcessInfo {
  readonly pid: number;
  readonly parentPid: number;
  readonly commandLine: string;
}

/** PF_EXITING of the kernel: it has begun to end, and its descriptors may be closed before it is a zombie. */
const exiting = 4;

/** Running processes (zombies do not run, nor those that the kernel ends) that `matches` accepts. */
function findProcesses(matches: (pid: number, parentPid: number) => boolean): ProcessInfo[] {
  const found: ProcessInfo[] = [];
  for (const name of list('/proc')) {
    const pid = Number(name);
    if (!Number.isInteger(pid)) continue;
    // "pid (command, with any characters) state parent group session terminal group-of-terminal flags ..."
    const stat = read(`/proc/${pid}/stat`);
    const [state, parent, , , , , flags] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (state === undefined || state === 'Z' || state === 'X') continue;
    if ((Number(flags) & exiting) !== 0) continue;
    const parentPid = Number(parent);
    if (!matches(pid, parentPid)) continue;
    const commandLine = read(`/proc/${pid}/cmdline`).replaceAll('\0', ' ').trim();
    found.push({ pid, parentPid, commandLine });
  }
  return found;
}

/** Returns the running children of `parentPid`. */
export function childrenOf(parentPid: number): ProcessInfo[] {
  return findProcesses((_pid, parent) => parent === parentPid);
}

/** True: `pid` exists and runs; a zombie does not. */
export function isRunning(pid: number): boolean {
  return findProcesses((each) => each === pid).length > 0;
}

/** Sends a signal to one process; 0 and -1 would mean whole groups, with the runner of the tests in them. */
export function killOne(pid: number | undefined, signal: NodeJS.Signals): void {
  assert.ok(pid !== undefined && pid > 1, `${pid} is no process to kill`);
  process.kill(pid, signal);
}

/** Targets of the open descriptors of this process, without the numbers of sockets and pipes. */
export function openDescriptors(pid: number | 'self' = 'self'): string[] {
  return list(`/proc/${pid}/fd`)
    .map((fd) => readLink(`/proc/${pid}/fd/${fd}`).replace(/:\[\d+\]$/, ''))
    .filter((target) => target !== '');
}

/** Returns the named shared memory of manycore. */
export function sharedMemoryObjects(): string[] {
  return list('/dev/shm').filter((name) => name.includes('manycore'));
}

// A process may exit between two reads: an unreadable folder is empty.
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

/** The reason why `limit` cannot be used here; `false` when it can. */
export const noLimits =
  spawnSync('prlimit', ['--version']).error !== undefined && 'there is no prlimit (util-linux)';

/** Sets limits of a running process of user `uid`, in the form of prlimit(1): `--nofile=3:`. */
export function limit(pid: number, limits: string, uid?: number): void {
  execFileSync('prlimit', [`--pid=${pid}`, limits], uid === undefined ? {} : { uid, gid: uid });
}
