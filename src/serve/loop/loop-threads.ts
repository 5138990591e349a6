// Threads of manycore's own programs beside their loop, as the loop sees them: its process starts and ends
// them, and they are members of the mesh like loops, so that their messages never wait for the loop.
// Not here: the process's side (process-threads.ts), the thread's side (side-thread.ts).

import { defer } from '../../lib/index.js';
import type { FromLoop, ToLoop, TravelledError } from '../protocol.js';

export interface SideThread {
  /** Resolves when the thread has ended, with the error that it threw. */
  readonly ended: Promise<TravelledError | undefined>;
  /** Terminates the thread at once. */
  end(): void;
}

export class LoopThreads {
  readonly #post: (message: FromLoop) => void;
  /** By thread number in this loop. */
  readonly #ended = new Map<number, (error: TravelledError | undefined) => void>();
  #last = 0;

  /** `post` sends to the process. */
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
