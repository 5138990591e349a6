// What a thread worker has to load, counted in words that both threads see. A thread that is terminated
// while it loads modules leaves their files open in the process, so its parent waits for a moment when
// it loads none. A process needs nothing of this: its files go with it.

import { nowMs, setTimeout } from '../internal/index.js';

/** Definitions that were sent and not learnt yet, and modules being loaded. */
const pendingAt = 0;
const loadingAt = 1;
const wordCount = 2;
/** How long a termination waits for modules at most, in ms. */
const maxLoadMs = 5_000;
/** How long it waits for a worker to begin with what was sent: one that has not is at work instead. */
const maxPendingMs = 100;
const recheckMs = 5;

export class Loads {
  readonly buffer: SharedArrayBuffer;
  readonly #words: Int32Array;

  /** `buffer`: what the parent's `Loads` has; none makes new words, for a thread that loads itself. */
  constructor(buffer?: SharedArrayBuffer) {
    this.buffer = buffer ?? new SharedArrayBuffer(wordCount * Int32Array.BYTES_PER_ELEMENT);
    this.#words = new Int32Array(this.buffer);
    if (buffer === undefined) this.begin();
  }

  /** The parent has sent a definition. */
  sent(): void {
    Atomics.add(this.#words, pendingAt, 1);
  }

  /** The worker has read a definition; `begin` comes before it when there are modules to load. */
  learnt(): void {
    Atomics.sub(this.#words, pendingAt, 1);
  }

  /** The worker loads modules. */
  begin(): void {
    Atomics.add(this.#words, loadingAt, 1);
  }

  end(): void {
    Atomics.sub(this.#words, loadingAt, 1);
  }

  /** Calls `terminate` when nothing is being loaded, or has been for too long; not when `hasEnded`. */
  whenSafe(terminate: () => void, hasEnded: () => boolean): void {
    const startMs = nowMs();
    const check = (): void => {
      if (hasEnded()) return;
      const waitedMs = nowMs() - startMs;
      const isLoading = Atomics.load(this.#words, loadingAt) > 0 && waitedMs < maxLoadMs;
      const isPending = Atomics.load(this.#words, pendingAt) > 0 && waitedMs < maxPendingMs;
      if (isLoading || isPending) setTimeout(check, recheckMs);
      else terminate();
    };
    check();
  }
}
