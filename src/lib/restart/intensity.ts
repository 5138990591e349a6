// Limits restarts within a period (restart intensity of Erlang/OTP's supervisors): each failure costs a delay that
// doubles with the failures of the period, and one failure too many ends the restarts. Pure: the caller owns clock
// and timer. Not here: failures in a row (restart.ts), and starts that fail in waves (patience.ts).

import { restartDefaults } from './restart.js';

export interface IntensityOptions {
  /** Restarts within the period; `Infinity`: no limit. */
  readonly max: number;
  /** The period, in ms. */
  readonly withinMs: number;
}

export const intensityDefaults: IntensityOptions = Object.freeze({ max: 5, withinMs: 60_000 });

const { firstDelayMs, maxDelayMs } = restartDefaults;
/** Failures beyond change no delay. */
const maxDoublings = 16;

export class RestartIntensity {
  readonly #options: IntensityOptions;
  /** Times of failures within the period, oldest first, in ms. */
  #failedAtMs: number[] = [];

  constructor(options: IntensityOptions = intensityDefaults) {
    this.#options = options;
  }

  /** Failures within the period that ended with the last failure. */
  get failures(): number {
    return this.#failedAtMs.length;
  }

  /** Counts a failure; returns the delay before the restart in ms, or `undefined`: give up. */
  failed(nowMs: number): number | undefined {
    const { max, withinMs } = this.#options;
    const recent = this.#failedAtMs.filter((atMs) => nowMs - atMs < withinMs);
    const kept = Number.isFinite(max) ? Math.max(max, 1) : maxDoublings; // more change nothing
    this.#failedAtMs = [...recent.slice(-kept), nowMs];
    if (this.failures > max) return undefined;
    return Math.min(firstDelayMs * 2 ** Math.min(this.failures - 1, maxDoublings), maxDelayMs);
  }
}
