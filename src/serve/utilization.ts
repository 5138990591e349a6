// How busy each loop was between two looks: the share of time in which it did not sleep in its poller,
// which is what Node calls event loop utilization. The listener thread writes into the scoreboard for how
// long a loop has slept, so a blocked loop is seen as what it is: busy.

import { boardAt, type Row } from './board.js';

/** What a loop sleeps beside this is the time between two requests. */
const saturatedUse = 0.9;

export class Utilization {
  /** Of loops that were ready at the last look. */
  readonly #sleptMs = new Map<Row, number>();
  readonly #use = new Map<Row, number>();
  #sampledAtMs = 0;

  /** `nowMs`: monotonic. */
  sample(rows: readonly Row[], nowMs: number): void {
    const pastMs = nowMs - this.#sampledAtMs;
    this.#sampledAtMs = nowMs;
    for (const row of rows) {
      const sleptMs = row.get(boardAt.idleMs);
      const before = this.#sleptMs.get(row);
      // What a loop does until it is ready says nothing of the load.
      if (row.state === 'ready') this.#sleptMs.set(row, sleptMs);
      else this.#sleptMs.delete(row);
      const share = 1 - ((sleptMs - (before ?? 0)) >>> 0) / pastMs;
      if (before === undefined || row.state !== 'ready') this.#use.delete(row);
      else this.#use.set(row, Math.min(1, Math.max(0, share)));
    }
  }

  /** 0 to 1; `undefined` for a loop that was not ready between two looks. */
  of(row: Row): number | undefined {
    return this.#use.get(row);
  }

  /** So many loops' worth of work was done. */
  sum(rows: readonly Row[]): number {
    return rows.reduce((sum, row) => sum + (this.of(row) ?? 0), 0);
  }

  /** Whether nobody has time left, as far as is known: there may be any amount of work. */
  isSaturated(rows: readonly Row[]): boolean {
    const known = rows.flatMap((row) => this.of(row) ?? []);
    return known.length > 0 && known.every((use) => use >= saturatedUse);
  }
}
