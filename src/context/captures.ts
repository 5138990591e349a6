// What taking snapshots of functions costs, while somebody wants to know: a look at the clock for each
// would show in calls that take a microsecond (bench/cases/metrics.js). What a snapshot has for nothing,
// because nothing in it can change, is not counted.

import { nowMs } from '../internal/index.js';

/** Of this thread, since its start, without the times in which nobody watched. */
export interface CaptureStats {
  readonly count: number;
  readonly totalMs: number;
}

let isWatched = false;
let count = 0;
let totalMs = 0;

/** From now on they are measured, or not any more. */
export function watchCaptures(on: boolean): void {
  isWatched = on;
}

export function captureStats(): CaptureStats {
  return { count, totalMs };
}

/** A snapshot begins: what `endCapture` is to be given, 0 where nobody watches. */
export function beginCapture(): number {
  return isWatched ? nowMs() : 0;
}

export function endCapture(startMs: number): void {
  if (startMs === 0) return;
  count += 1;
  totalMs += nowMs() - startMs;
}
