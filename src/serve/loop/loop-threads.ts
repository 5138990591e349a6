// Threads of manycore's own programs beside their loop, as the loop sees them: its process starts and ends
// them, and they are members of the mesh like loops, so that their messages never wait for the loop.
// Not here: the process's side (process-threads.ts), the thread's side (side-thread.ts).

import { defer } from '../../lib/index.js';
import type { FromLoop, LoopMessage, TravelledError } from '../protocol.js';
import type { Link } from '../shared/link.js';

export interface SideThread {
  /** Resolves when the thread has ended, with the error that it threw. */
  readonly ended: Promise<TravelledError | undefined>;
  /** Terminates the thread at once. */
  end(): void;
}

export class LoopThreads {
  readonly #up: Link<FromLoop>;
  /** By id of the request. */
  readonly #ended = new Map<number, (error: TravelledError | undefined) => void>();
  #lastId = 0;

  constructor(up: Link<FromLoop>) {
    this.#up = up;
  }

  start(entry: string, data: unknown): SideThread {
    this.#lastId += 1;
    const id = this.#lastId;
    const { promise, resolve } = defer<TravelledError | undefined>();
    this.#ended.set(id, resolve);
    this.#up.post({ id, body: { type: 'startThread', entry, data } });
    return { ended: promise, end: () => this.#up.post({ id, body: { type: 'endThread' } }) };
  }

  receive({ id, error }: Extract<LoopMessage, { type: 'threadEnded' }>): void {
    this.#ended.get(id)?.(error);
    this.#ended.delete(id);
  }
}
