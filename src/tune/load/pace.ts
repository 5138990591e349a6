// Length of each run, such that one pass and most of another fit the time.

import { runsOfPass } from '../search/search.js';
import type { RunLength } from './run-stats.js';

/** After a change another pass follows, with fewer candidates; some of them are skipped for time. */
const passes = 1.6;
const minLength: RunLength = Object.freeze({ warmUpSeconds: 1, seconds: 1 });
const maxSeconds = 15;

/** Returns whole seconds, which most load generators need. `overheadMs`: time of a run beside its load. */
export function lengthFor(timeMs: number, candidates: number, overheadMs: number): RunLength {
  const runs = Math.max(1, runsOfPass(candidates) * passes);
  const whole = Math.floor((timeMs / runs - overheadMs) / 1000);
  const warmUpSeconds = Math.max(minLength.warmUpSeconds, Math.round(whole / 3));
  const seconds = Math.min(maxSeconds, Math.max(minLength.seconds, whole - warmUpSeconds));
  return { warmUpSeconds: Math.min(warmUpSeconds, seconds), seconds };
}
