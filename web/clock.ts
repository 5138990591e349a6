// Slices tell times of the clock of their thread; the page has its own. How far the two are apart is the
// least that was ever seen between the end of a slice and its arrival.

export class ThreadClock {
  #offsetMs = Number.POSITIVE_INFINITY;

  /** A slice that ends at `toMs` is here now. */
  note(toMs: number, nowMs: number): void {
    // One that is much later than the others: the page, or the thread, was asleep.
    const offsetMs = nowMs - toMs;
    if (offsetMs < this.#offsetMs || offsetMs > this.#offsetMs + 2000) this.#offsetMs = offsetMs;
  }

  toPage(threadMs: number): number {
    return threadMs + this.#offsetMs;
  }
}
