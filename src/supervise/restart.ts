// How often a thing that fails may be started again. Delays double from failure to failure, so a bad
// set-up does not become a storm of processes, and after too many failures in a row the supervisor
// gives up: whoever waits gets an error instead of silence. The words are those of Erlang/OTP's
// supervisors (restart intensity) and of exponential backoff. Pure: the caller owns clock and timer.

export interface RestartOptions {
  /** Delay after the first failure, in ms; it doubles with each further one. */
  readonly firstDelayMs: number;
  readonly maxDelayMs: number;
  /** Failures in a row after which nothing is started again. */
  readonly maxFailures: number;
}

export const restartDefaults: RestartOptions = Object.freeze({
  firstDelayMs: 50,
  maxDelayMs: 5_000,
  maxFailures: 5,
});

/** Counts failures in a row and says how long to wait before the next start. */
export class RestartPolicy {
  readonly #options: RestartOptions;
  #failuresInRow = 0;

  constructor(options: RestartOptions = restartDefaults) {
    this.#options = options;
  }

  get failuresInRow(): number {
    return this.#failuresInRow;
  }

  /** One more failure: the delay before the next start in ms, or `undefined`: give up. */
  failed(): number | undefined {
    this.#failuresInRow += 1;
    if (this.#failuresInRow >= this.#options.maxFailures) return undefined;
    const delayMs = this.#options.firstDelayMs * 2 ** (this.#failuresInRow - 1);
    return Math.min(delayMs, this.#options.maxDelayMs);
  }

  /** A start that worked ends the row. */
  succeeded(): void {
    this.#failuresInRow = 0;
  }
}
