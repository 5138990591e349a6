// The nice value of a worker: the scheduler prefers threads with a lower one where cores are short.

import { readdirSync, stat } from 'node:fs';
import { getPriority, setPriority } from 'node:os';

const maxNice = 19;

/** Adds to the nice value of this process or, on Linux, of this thread. Does nothing where that is refused. */
export function yieldCores(increment: number, isProcess: boolean): void {
  try {
    const nice = Math.min(maxNice, getPriority() + increment);
    if (isProcess) yieldProcess(nice);
    else if (process.platform === 'linux') yieldThread(nice);
  } catch {} // a policy that forbids it
}

/** On Linux each thread has a nice value of its own, and Node has started some for the collector by now. */
function yieldProcess(nice: number): void {
  for (const id of process.platform === 'linux' ? threadIds() : [0]) {
    try {
      setPriority(id, nice);
    } catch {} // a thread that has ended
  }
}

function threadIds(): number[] {
  try {
    return readdirSync('/proc/self/task').map(Number);
  } catch {
    return [0]; // this thread: there is no /proc
  }
}

/**
 * The first job for the thread pool of libuv starts its threads, which all threads of the process use, with
 * the nice value of the thread that submits it.
 */
function yieldThread(nice: number): void {
  stat('/', () => {});
  setPriority(0, nice);
}
