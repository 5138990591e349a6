// How long starts that fail are repeated. Failures are counted in waves: hosts that were started beside
// each other fail together, of one cause, and a machine with more cores is not less patient than one
// with few. It ends by time, or when a cause that cannot pass has shown itself often enough. Delays
// double from wave to wave. Pure: the caller owns clock and timer. Counts without time are restart.ts.

export interface PatienceOptions {
  /** Delay after the first wave, in ms; it doubles with each further one. */
  readonly firstDelayMs: number;
  readonly maxDelayMs: number;
  /** How long a row of failed waves may last, in ms, from the start of what failed first. */
  readonly patienceMs: number;
  /** A failure of something that was started so long after the last one begins a new row; in ms. */
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
  /** When what failed was started. */
  readonly beganMs: number;
  /** The same for failures of one cause. */
  readonly signature: string;
  /** Waves in a row of the same signature after which the cause cannot pass; `Infinity`: it may always. */
  readonly wavesToBeSure: number;
}

/** `again`: start again after `delayMs` · `lasting`: no start will work · `late`: the time is over. */
export interface Verdict {
  readonly next: 'again' | 'lasting' | 'late';
  readonly delayMs: number;
  /** It counts: the first failure of its wave. */
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

  /** Waves that failed in a row. */
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

  /** The row has ended. What began before its last failure still belongs to that wave. */
  reset(): void {
    this.#waves = 0;
    this.#sameWaves = 0;
    this.#signature = '';
  }
}
