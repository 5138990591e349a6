// Whether a process that is no child of this one still runs.

import { readFileSync } from 'node:fs';

/** A zombie does not: it waits for nothing. */
export function isAlive(pid: number): boolean {
  try {
    // "pid (command, with any characters) state …"
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return !/\) [ZX] [^)]*$/.test(stat);
  } catch {
    return false;
  }
}
