// Ends processes, also those that are no children of this one: first by SIGTERM, then by SIGKILL.

import { setTimeout as sleep } from 'node:timers/promises';
import { runningStat } from '../proc/index.js';

/** Time to end after SIGTERM. */
const graceMs = 5000;
const pauseMs = 20;

/** Resolves when all have ended, or were killed. */
export async function endProcesses(pids: readonly number[]): Promise<void> {
  const started = pids.map((pid) => ({ pid, startMs: runningStat(pid)?.startMs }));
  // Skips reused numbers, which belong to other processes.
  const left = (): number[] =>
    started.flatMap(({ pid, startMs }) =>
      startMs !== undefined && runningStat(pid)?.startMs === startMs ? [pid] : [],
    );
  for (const pid of left()) kill(pid, 'SIGTERM');
  const end = performance.now() + graceMs;
  while (left().length > 0 && performance.now() < end) await sleep(pauseMs);
  for (const pid of left()) kill(pid, 'SIGKILL');
}

function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // it has ended, or permission is missing
  }
}
