// Producers that wait for room in the queue, in order. Room that was promised to one is not promised to the
// next: it is used by a call, or free again when a turn of the event loop has passed without one.
// Not here: how much room there is (dispatcher.ts).

import { setImmediate } from '../lib/index.js';

export class RoomLine {
  readonly #room: () => number;
  readonly #waiters: (() => void)[] = [];
  #promised = 0;
  #isTurnWatched = false;

  /** `room`: returns how many calls may be made now. */
  constructor(room: () => number) {
    this.#room = room;
  }

  get isEmpty(): boolean {
    return this.#waiters.length === 0;
  }

  /** Resolves when it is this producer's turn; `undefined`: it is now. */
  wait(): Promise<void> | undefined {
    if (this.isEmpty && this.#room() > this.#promised) {
      this.#promise();
      return undefined;
    }
    return new Promise((resolve) => {
      this.#waiters.push(resolve);
    });
  }

  /** Uses a promise: a call was admitted or refused. */
  used(): void {
    if (this.#promised === 0) return;
    this.#promised -= 1;
    this.notify();
  }

  /** Resolves waiting producers while there is room. */
  notify(): void {
    while (!this.isEmpty && this.#room() > this.#promised) {
      this.#promise();
      this.#waiters.shift()?.();
    }
  }

  /** Resolves all: the pool is closed. */
  end(): void {
    for (const resolve of this.#waiters.splice(0)) resolve();
  }

  #promise(): void {
    this.#promised += 1;
    if (this.#isTurnWatched) return;
    this.#isTurnWatched = true;
    setImmediate(() => {
      this.#isTurnWatched = false;
      this.#promised = 0;
      this.notify();
    });
  }
}
