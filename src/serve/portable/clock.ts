// The clock of a scoreboard that processes do not share: the system's monotonic clock, which they do.

import { hrtime } from 'node:process';

const nsPerMs = 1_000_000n;

/** Returns the time in ms, which wraps after 49 days and is never 0. */
export function clockMs(): number {
  return Number(BigInt.asUintN(32, hrtime.bigint() / nsPerMs)) || 1;
}
