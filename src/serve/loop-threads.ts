// Threads that a program of ours has beside its loop, as the loop sees them: its process starts and ends
// them, and they are members of the mesh like loops, so that nothing of theirs waits for the loop.
// Not here: what a process does (process-threads.ts), what runs in them (side-thread.ts).

import { defer } from '../internal/index.js';
import type { FromLoop, ToLoop, TravelledError } from './protocol.js';

export interface SideThread {
  /** Resolves when it is gone, with what it threw. */
  readonly ended: Promise<TravelledError | undefined>;
  /** Ends it at once, whatever it does. */
  end(): void;
}

export class LoopThreads {
  readonly #post: (message: FromLoop) => void;
  /** By their numbers in this loop. */
  readonly #ended = new Map<number, (error: TravelledError | undefined) => void>();
  #last = 0;

  /** `post` tells the process. */
  constructor(post: (message: FromLoop) => void) {
    this.#post = post;
  }

  start(entry: string, data: unknown): SideThread {
    this.#last += 1;
    const thread = this.#last;
    const { promise, resolve } = defer<TravelledError | undefined>();
    this.#ended.set(thread, resolve);
    this.#post({ type: 'startThread', thread, entry, data });
    return { ended: promise, end: () => this.#post({ type: 'endThread', thread }) };
  }

  receive({ thread, error }: Extract<ToLoop, { type: 'threadEnded' }>): void {
    this.#ended.get(thread)?.(error);
    this.#ended.delete(thread);
  }
}
