// How long each run is, so that a pass fits its time, and most of another one.

import type { RunLength } from './run-stats.js';
import { runsOfPass } from './search.js';

/** A pass that changes something is followed by another, with fewer candidates: some have no time then. */
const passes = 1.6;
const minLength: RunLength = Object.freeze({ warmUpSeconds: 1, seconds: 1 });
const maxSeconds = 15;

/** Whole seconds, as most load generators want them. `overheadMs`: what a run takes beside them. */
export function lengthFor(timeMs: number, candidates: number, overheadMs: number): RunLength {
  const runs = Math.max(1, runsOfPass(candidates) * passes);
  const whole = Math.floor((timeMs / runs - overheadMs) / 1000);
  const warmUpSeconds = Math.max(minLength.warmUpSeconds, Math.round(whole / 3));
  const seconds = Math.min(maxSeconds, Math.max(minLength.seconds, whole - warmUpSeconds));
  return { warmUpSeconds: Math.min(warmUpSeconds, seconds), seconds };
}
