// Limits restarts after failures. Delays double from failure to failure (exponential backoff). After too many
// failures in a row the supervisor gives up, and callers get an error (restart intensity of Erlang/OTP's
// supervisors). Pure: the caller owns clock and timer. Not here: starts of a pool's workers, which are limited by
// time (patience.ts).

export interface RestartOptions {
  /** Delay after the first failure, in ms; it doubles with each further one. */
  readonly firstDelayMs: number;
  readonly maxDelayMs: number;
  /** Failures in a row after which the supervisor gives up. */
  readonly maxFailures: number;
}

export const restartDefaults: RestartOptions = Object.freeze({
  firstDelayMs: 50,
  maxDelayMs: 5_000,
  maxFailures: 5,
});

/** Counts failures in a row and gives the delay before the next start. */
export class RestartPolicy {
  #options: RestartOptions;
  #failuresInRow = 0;

  constructor(options: RestartOptions = restartDefaults) {
    this.#options = options;
  }

  get failuresInRow(): number {
    return this.#failuresInRow;
  }

  /** Takes other options; the row goes on. */
  renew(options: RestartOptions): void {
    this.#options = options;
  }

  /** Counts a failure; returns the delay before the next start in ms, or `undefined`: give up. */
  failed(): number | undefined {
    this.#failuresInRow += 1;
    if (this.#failuresInRow >= this.#options.maxFailures) return undefined;
    const delayMs = this.#options.firstDelayMs * 2 ** (this.#failuresInRow - 1);
    return Math.min(delayMs, this.#options.maxDelayMs);
  }

  /** Ends the row after a start that worked. */
  succeeded(): void {
    this.#failuresInRow = 0;
  }
}
