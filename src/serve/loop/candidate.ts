// One loop as a candidate for the work that exactly one loop of its server does (`onlyOne`). The supervisor elects
// one (leadership.ts). A loop that is to end aborts the signal of its functions, and resigns when they have settled.

import type { FromLoop } from '../protocol.js';
import { type OnlyOneFunction, runUntil } from '../self.js';
import type { Link } from '../shared/link.js';

export class Candidate {
  readonly #up: Link<FromLoop>;
  /** Functions that have not begun. */
  #waiting: OnlyOneFunction[] = [];
  readonly #running = new Set<Promise<void>>();
  readonly #aborting = new AbortController();
  #isCandidate = false;
  #isElected = false;
  #isLeaving = false;

  constructor(up: Link<FromLoop>) {
    this.#up = up;
  }

  /** Runs `fn` here if this loop is the elected one, or when it is. */
  readonly add = (fn: OnlyOneFunction): void => {
    if (this.#isLeaving) return;
    this.#waiting.push(fn);
    if (!this.#isCandidate) this.#up.post({ body: { type: 'stand' } });
    this.#isCandidate = true;
    if (this.#isElected) this.#begin();
  };

  /** Handles the supervisor's election of this loop. Ignored in a loop that has resigned in the meantime. */
  elected(): void {
    if (this.#isLeaving) return;
    this.#isElected = true;
    this.#begin();
  }

  #begin(): void {
    for (const fn of this.#waiting) {
      const running = runUntil(this.#aborting.signal, fn);
      this.#running.add(running);
      void running.then(() => this.#running.delete(running));
    }
    this.#waiting = [];
  }

  /** Ends the functions; resolves when they have, and another loop may begin. Never rejects. */
  async resign(): Promise<void> {
    if (this.#isLeaving) return;
    this.#isLeaving = true;
    this.#waiting = [];
    this.#aborting.abort();
    await Promise.all(this.#running);
    if (this.#isCandidate) this.#up.post({ body: { type: 'resign' } });
  }
}
