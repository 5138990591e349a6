// How long a job waits for a thread of the pool, found out by waiting as one: what works with any Node on
// any system, for the own process alone. It adds to a queue that may be full, and says nothing of how many
// jobs there are: so it is for where they cannot be counted (read.ts), one at a time, and only when asked.

import { stat } from 'node:fs/promises';

export class PoolProbe {
  readonly #doJob: () => Promise<unknown>;
  /** Of the job that is under way, by `performance.now()`. */
  #startMs: number | undefined;
  /** Of the one before. */
  #waitMs: number | undefined;

  /** `doJob`: something trivial for the pool. */
  constructor(doJob: () => Promise<unknown> = () => stat('/')) {
    this.#doJob = doJob;
  }

  /**
   * How long the job of an earlier look has waited, with what it took itself, which is some hundredths of
   * a ms, and what the loop took to hear of it; so far, where it still does. In ms; `undefined` at the
   * first look. The next job begins where none is under way.
   */
  look(): number | undefined {
    if (this.#startMs !== undefined) return performance.now() - this.#startMs;
    void this.#begin();
    return this.#waitMs;
  }

  async #begin(): Promise<void> {
    const startMs = performance.now();
    this.#startMs = startMs;
    await this.#doJob().catch(() => {}); // refused or not, a thread has done it
    this.#waitMs = performance.now() - startMs;
    this.#startMs = undefined;
  }
}
