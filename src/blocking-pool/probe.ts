// Measures the wait for a thread of the pool with a job of its own. It works with any Node on any system, for
// this process alone. It adds a job to a queue that may be long and gives no number of jobs, so it serves where
// jobs cannot be counted (read.ts), one at a time and on demand.

import { stat } from 'node:fs/promises';

export class PoolProbe {
  readonly #doJob: () => Promise<unknown>;
  /** Start of the job under way, by `performance.now()`. */
  #startMs: number | undefined;
  /** The wait of the job before. */
  #waitMs: number | undefined;

  /** `doJob` queues a trivial job in the pool. */
  constructor(doJob: () => Promise<unknown> = () => stat('/')) {
    this.#doJob = doJob;
  }

  /**
   * The wait of the last job, in ms; `undefined` at the first call. It includes the job itself (some hundredths
   * of a ms) and the delay of the loop. For a job under way it is the wait so far. Starts the next job when none
   * is under way.
   */
  poll(): number | undefined {
    if (this.#startMs !== undefined) return performance.now() - this.#startMs;
    void this.#begin();
    return this.#waitMs;
  }

  async #begin(): Promise<void> {
    const startMs = performance.now();
    this.#startMs = startMs;
    await this.#doJob().catch(() => {}); // fulfilled or rejected: a thread has done it
    this.#waitMs = performance.now() - startMs;
    this.#startMs = undefined;
  }
}
