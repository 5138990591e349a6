// The exit code of a process, by the convention of shells.

import { constants } from 'node:os';

const signalBase = 128;

/** The exit code of a child, or 128 and the number of the signal that has ended it. */
export function exitCodeOf(code: number | null, signal: NodeJS.Signals | null): number {
  return code ?? signalBase + (signal === null ? 0 : constants.signals[signal]);
}
