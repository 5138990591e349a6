// Results for a reader that takes them one by one: in the order of the items, or as they come. Results that
// the reader has not taken count against the map's lead, so a slow reader slows the source.

import type { MapRun } from './map.js';
import type { Piece } from './source.js';

export class ResultQueue {
  /** Number of items whose results the reader took. */
  takenItems = 0;
  readonly #isOrdered: boolean;
  /** Results that cannot be delivered yet, by the position of their first item. */
  readonly #early = new Map<number, readonly unknown[]>();
  readonly #batches: (readonly unknown[])[] = [];
  #nextPosition = 0;
  #wake: (() => void) | undefined;

  constructor(isOrdered: boolean) {
    this.#isOrdered = isOrdered;
  }

  readonly accept = (piece: Piece, count: number, value: unknown): void => {
    if (!Array.isArray(value) || value.length !== count) {
      throw new TypeError('a chunk was answered with something else than its results');
    }
    if (this.#isOrdered) this.#acceptInOrder(piece.position, value);
    else this.#batches.push(value);
    this.wake();
  };

  #acceptInOrder(position: number, results: readonly unknown[]): void {
    this.#early.set(position, results);
    let next = this.#early.get(this.#nextPosition);
    while (next !== undefined) {
      this.#early.delete(this.#nextPosition);
      this.#nextPosition += next.length;
      this.#batches.push(next);
      next = this.#early.get(this.#nextPosition);
    }
  }

  /** Wakes the reader: something came, or nothing will. */
  wake(): void {
    this.#wake?.();
    this.#wake = undefined;
  }

  take(): readonly unknown[] | undefined {
    return this.#batches.shift();
  }

  /** Resolves at the next `wake`. */
  wait(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}

/** Reads the results of a run that `begin` starts when the first is requested; leaving ends the run. */
export async function* readResults(
  queue: ResultQueue,
  begin: () => MapRun,
): AsyncGenerator<unknown, void, undefined> {
  const run = begin();
  let isOver = false;
  const end = (): void => {
    isOver = true;
    queue.wake();
  };
  run.finished.then(end, end);
  try {
    run.pump();
    while (true) {
      const batch = queue.take();
      if (batch === undefined) {
        if (isOver) break;
        await queue.wait();
        continue;
      }
      for (const result of batch) {
        yield result;
        queue.takenItems += 1; // the reader came back for more
      }
      run.pump();
    }
    await run.finished;
  } finally {
    run.cancel();
  }
}
