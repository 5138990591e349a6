// Converts times of slices, by the clock of their thread, to the clock of the page. The offset of the clocks
// is the least difference ever seen between the end of a slice and its arrival.

export class ThreadClock {
  #offsetMs = Number.POSITIVE_INFINITY;

  /** Records the arrival of a slice that ends at `toMs`. */
  note(toMs: number, nowMs: number): void {
    // Much later than all others: the page or the thread was suspended.
    const offsetMs = nowMs - toMs;
    if (offsetMs < this.#offsetMs || offsetMs > this.#offsetMs + 2000) this.#offsetMs = offsetMs;
  }

  toPage(threadMs: number): number {
    return threadMs + this.#offsetMs;
  }
}
