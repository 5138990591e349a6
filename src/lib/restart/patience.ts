// Limits how long failing starts are repeated. Failures are counted in waves: workers that start together fail
// together, of one cause, so the number of cores does not matter. Repetition ends by time, or after a number of
// equal failures that cannot pass. Delays double from wave to wave (exponential backoff). Pure: the caller owns
// clock and timer. Not here: counts without time (restart.ts).

export interface PatienceOptions {
  /** Delay after the first wave, in ms; it doubles with each further one. */
  readonly firstDelayMs: number;
  readonly maxDelayMs: number;
  /** Limit of a row of failed waves, in ms, from the start of its first worker. */
  readonly patienceMs: number;
  /** A start this long after the last failure begins a new row when it fails; in ms. */
  readonly quietMs: number;
}

export const patienceDefaults: PatienceOptions = Object.freeze({
  firstDelayMs: 50,
  maxDelayMs: 2_000,
  patienceMs: 30_000,
  quietMs: 10_000,
});

export interface Failure {
  readonly nowMs: number;
  /** Start time of the worker that failed. */
  readonly beganMs: number;
  /** A text that is equal for failures of one cause. */
  readonly signature: string;
  /** Equal waves in a row after which the cause is permanent; `Infinity`: it may always pass. */
  readonly wavesToBeSure: number;
}

/** `again`: start again after `delayMs` · `lasting`: the cause is permanent · `late`: the time is over. */
export interface Verdict {
  readonly next: 'again' | 'lasting' | 'late';
  readonly delayMs: number;
  /** True: the first failure of its wave, which counts. */
  readonly isNewWave: boolean;
}

export class Patience {
  readonly #options: PatienceOptions;
  #waves = 0;
  #rowBeganMs = 0;
  #lastFailedMs = -Infinity;
  #signature = '';
  #sameWaves = 0;

  constructor(options: PatienceOptions = patienceDefaults) {
    this.#options = options;
  }

  /** Failed waves in a row. */
  get wavesInRow(): number {
    return this.#waves;
  }

  failed({ nowMs, beganMs, signature, wavesToBeSure }: Failure): Verdict {
    const isNewWave = beganMs > this.#lastFailedMs;
    if (beganMs - this.#lastFailedMs > this.#options.quietMs) this.reset();
    if (isNewWave) this.#count(nowMs, beganMs, signature);
    const { firstDelayMs, maxDelayMs, patienceMs } = this.#options;
    const delayMs = Math.min(firstDelayMs * 2 ** Math.max(0, this.#waves - 1), maxDelayMs);
    const sameWaves = signature === this.#signature ? this.#sameWaves : 1;
    if (sameWaves >= wavesToBeSure) return { next: 'lasting', delayMs, isNewWave };
    const isLate = this.#waves > 0 && nowMs - this.#rowBeganMs >= patienceMs;
    return { next: isLate ? 'late' : 'again', delayMs, isNewWave };
  }

  #count(nowMs: number, beganMs: number, signature: string): void {
    if (this.#waves === 0) this.#rowBeganMs = beganMs;
    this.#waves += 1;
    this.#lastFailedMs = nowMs;
    this.#sameWaves = signature === this.#signature ? this.#sameWaves + 1 : 1;
    this.#signature = signature;
  }

  /** Ends the row. A worker that started before the last failure still belongs to that wave. */
  reset(): void {
    this.#waves = 0;
    this.#sameWaves = 0;
    this.#signature = '';
  }
}
