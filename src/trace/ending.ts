// Ends processes that are not all children of this one: asks them, and kills those that stay.

import { setTimeout as sleep } from 'node:timers/promises';
import { runningStat } from '../proc/index.js';

/** How long they may take once they are asked. */
const graceMs = 5000;
const pauseMs = 20;

/** Resolves when all have ended, or were killed. */
export async function endProcesses(pids: readonly number[]): Promise<void> {
  const started = pids.map((pid) => ({ pid, startMs: runningStat(pid)?.startMs }));
  // A number that was given again belongs to a stranger.
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
    // It has ended, or is not ours to end.
  }
}
