// Workers that several parents share, as one parent sees them: it asks for a place in one, is given it
// by whoever started the worker, and loses it when it closes the channel or the worker ends.
// The worker's side is shared-entry.ts, the side of whoever starts workers shared-process.ts.

import type { Turns } from './turns.js';
import type { WorkerExit, WorkerHandle } from './types.js';

/** What a thread's program may use in place of workers of its own. */
export interface SharedWorkers {
  /** As many as there are at most; a thread has one place in each. */
  readonly count: number;
  /** Nobody gives places any more: the thread starts workers of its own. */
  readonly isOver: boolean;
  /** Asks for a place; the descriptors of the channel (`channelFds`) stay the caller's. */
  join(fds: readonly number[]): SharedPlace;
}

export interface GivenPlace {
  /** Number of the worker in `Turns`, and its process. */
  readonly worker: number;
  readonly pid: number;
  /** What the worker writes to its word while it works for this place. */
  readonly place: number;
}

/** A place in a shared worker, which to its parent is a worker. */
export class SharedPlace implements WorkerHandle {
  readonly kind = 'process';
  readonly pipe = undefined;
  onExit: (exit: WorkerExit) => void = () => {};
  onRetire: () => void = () => {};
  readonly #turns: Turns;
  readonly #part: () => void;
  #given: GivenPlace | undefined;

  /** `part` gives it back, also before it was given. */
  constructor(turns: Turns, part: () => void) {
    this.#turns = turns;
    this.#part = part;
  }

  get pid(): number | undefined {
    return this.#given?.pid;
  }

  /** Whether the worker works for this parent, for another, or for none. */
  get turn(): 'ours' | 'elsewhere' | 'none' {
    if (this.#given === undefined) return 'none';
    const { worker, place } = this.#given;
    const at = this.#turns.of(worker);
    if (at === 0) return 'none';
    return at === place ? 'ours' : 'elsewhere';
  }

  given(place: GivenPlace): void {
    this.#given = place;
  }

  /** Called once. */
  ended(exit: WorkerExit): void {
    this.onExit(exit);
  }

  terminate(): void {
    this.#part();
  }

  /** Nothing of this thread keeps waiting for a worker that is others' as well. */
  ref(): void {}

  /**
   * Ends the worker, for all its parents: what had not begun there goes elsewhere. While it works for
   * another one, only the place is given back.
   */
  kill(): void {
    if (this.#given === undefined || this.turn === 'elsewhere') {
      this.#part();
      return;
    }
    try {
      process.kill(this.#given.pid, 'SIGKILL');
    } catch {
      // it has ended already, and will be heard of
    }
  }
}

let ofThread: SharedWorkers | undefined;

/** From now on the pool of `run` in this thread has places instead of workers of its own. */
export function useSharedWorkers(workers: SharedWorkers): void {
  ofThread = workers;
}

export function sharedWorkers(): SharedWorkers | undefined {
  return ofThread;
}
