// Utilization of each loop between two samples: the share of time in which it did not sleep in its poller
// (Node's event loop utilization). The listener thread writes into the scoreboard how long a loop has slept,
// so a blocked loop counts as busy.

import { boardAt, type Row } from '../shared/board.js';

/** Above this a loop counts as saturated: it sleeps only between two requests. */
const saturatedUse = 0.9;

export class Utilization {
  /** Sleep time of loops that were ready at the last sample, in ms. */
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
      // Work of a loop before it is ready does not count as load.
      if (row.state === 'ready') this.#sleptMs.set(row, sleptMs);
      else this.#sleptMs.delete(row);
      const share = 1 - ((sleptMs - (before ?? 0)) >>> 0) / pastMs;
      if (before === undefined || row.state !== 'ready') this.#use.delete(row);
      else this.#use.set(row, Math.min(1, Math.max(0, share)));
    }
  }

  /** Utilization, 0 to 1; `undefined` for a loop that was not ready at both samples. */
  of(row: Row): number | undefined {
    return this.#use.get(row);
  }

  /** Sum of the utilizations: work done, in loops. */
  sum(rows: readonly Row[]): number {
    return rows.reduce((sum, row) => sum + (this.of(row) ?? 0), 0);
  }

  /** True: all sampled loops are saturated, so the need is unknown. */
  isSaturated(rows: readonly Row[]): boolean {
    const known = rows.flatMap((row) => this.of(row) ?? []);
    return known.length > 0 && known.every((use) => use >= saturatedUse);
  }
}
