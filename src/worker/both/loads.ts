// Module loads of a thread worker, counted in words that both threads see. A thread that is terminated
// while it loads modules leaves their files open in the process, so its parent waits for a moment without
// loads. A process needs none of this: its files close with it.

import { nowMs, setTimeout } from '../../lib/index.js';

/** Indices of the words: definitions sent and not learnt yet, and modules being loaded. */
const pendingAt = 0;
const loadingAt = 1;
const wordCount = 2;
/** Maximum wait of a termination for modules, in ms. */
const maxLoadMs = 5_000;
/**
 * Maximum wait for a worker to begin with sent definitions, in ms: one that has not is running a task
 * instead.
 */
const maxPendingMs = 100;
const recheckMs = 5;

export class Loads {
  readonly buffer: SharedArrayBuffer;
  readonly #words: Int32Array;

  /**
   * `buffer`: that of the parent's `Loads`; without it new words are made, for a thread that loads itself.
   */
  constructor(buffer?: SharedArrayBuffer) {
    this.buffer = buffer ?? new SharedArrayBuffer(wordCount * Int32Array.BYTES_PER_ELEMENT);
    this.#words = new Int32Array(this.buffer);
    if (buffer === undefined) this.begin();
  }

  /** Counts a definition that the parent has sent. */
  sent(): void {
    Atomics.add(this.#words, pendingAt, 1);
  }

  /**
   * Uncounts a definition that the worker has read; `begin` comes before it when there are modules to load.
   */
  learnt(): void {
    Atomics.sub(this.#words, pendingAt, 1);
  }

  /** Counts a load of modules in the worker. */
  begin(): void {
    Atomics.add(this.#words, loadingAt, 1);
  }

  end(): void {
    Atomics.sub(this.#words, loadingAt, 1);
  }

  /** Calls `terminate` when nothing is being loaded, or a load takes too long; not when `hasEnded`. */
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
