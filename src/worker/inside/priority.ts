// The nice value of a worker: the scheduler prefers threads with a lower one where cores are short.

import { readdirSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';

const maxNice = 19;

/** Adds to the nice value of this process or, on Linux, of this thread. Does nothing where that is refused. */
export function yieldCores(increment: number, isProcess: boolean): void {
  if (!isProcess && process.platform !== 'linux') return; // a thread there has none of its own
  const nice = Math.min(maxNice, getPriority() + increment);
  for (const id of isProcess ? threadIds() : [0]) {
    try {
      setPriority(id, nice);
    } catch {} // a thread that has ended, or a policy that forbids it
  }
}

/**
 * The threads of this process; on Linux each has a nice value of its own, and Node has started some for the
 * collector by now. Elsewhere, and without /proc, `[0]`: this process.
 */
function threadIds(): number[] {
  if (process.platform !== 'linux') return [0];
  try {
    return readdirSync('/proc/self/task').map(Number);
  } catch {
    return [0];
  }
}
