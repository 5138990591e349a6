// Measures the cost of snapshots of functions while a listener is subscribed. Reading the clock for each
// snapshot would be visible in calls that take a microsecond (bench/cases/metrics.js). A constant snapshot,
// which costs nothing, is not counted.

import { nowMs } from '../../lib/index.js';

/** Totals of this thread since its start, without the times in which nothing subscribed. */
export interface CaptureStats {
  readonly count: number;
  readonly totalMs: number;
}

let isWatched = false;
let count = 0;
let totalMs = 0;

/** Switches measuring on or off. */
export function watchCaptures(on: boolean): void {
  isWatched = on;
}

export function captureStats(): CaptureStats {
  return { count, totalMs };
}

/** Begins a snapshot. Returns the value that `endCapture` expects; 0: nothing is subscribed. */
export function beginCapture(): number {
  return isWatched ? nowMs() : 0;
}

export function endCapture(startMs: number): void {
  if (startMs === 0) return;
  count += 1;
  totalMs += nowMs() - startMs;
}
