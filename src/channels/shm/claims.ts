// Claim words: one int32 for each task in flight, which both ends can change at once. The end that turns
// `open` into `taken` owns the task: the worker to run it, or the parent to reclaim it. The parent turns
// `open` into `cancelled` when the task must not begin and its answer shows that the worker reads on.

import type { Claims } from '../types.js';
import { wordAt, workerLoadingAt } from './layout.js';

const taken = 0;
const open = 1;
const cancelled = 2;

export class SegmentClaims implements Claims {
  readonly slotCount: number;
  readonly #words: Int32Array;

  constructor(words: Int32Array, slotCount: number) {
    this.slotCount = slotCount;
    this.#words = words;
  }

  open(slot: number): void {
    Atomics.store(this.#words, this.#index(slot), open);
  }

  tryClaim(slot: number): boolean {
    return Atomics.compareExchange(this.#words, this.#index(slot), open, taken) === open;
  }

  isOpen(slot: number): boolean {
    return Atomics.load(this.#words, this.#index(slot)) === open;
  }

  tryCancel(slot: number): boolean {
    return Atomics.compareExchange(this.#words, this.#index(slot), open, cancelled) === open;
  }

  isCancelled(slot: number): boolean {
    return Atomics.load(this.#words, this.#index(slot)) === cancelled;
  }

  /** The word is 0 or the definition's id + 1. */
  get loading(): number | undefined {
    const word = Atomics.load(this.#words, workerLoadingAt);
    return word === 0 ? undefined : word - 1;
  }

  set loading(definition: number | undefined) {
    Atomics.store(this.#words, workerLoadingAt, definition === undefined ? 0 : definition + 1);
  }

  /**
   * Checks the slot number, which may come from the peer: outside of the range it would name another word.
   */
  #index(slot: number): number {
    if (!(slot >= 0 && slot < this.slotCount)) {
      throw new RangeError(`slot ${slot} is not in [0, ${this.slotCount})`);
    }
    return wordAt.firstClaim + slot;
  }
}
