// Instances of loops that have ended, until loops that replace theirs take them. Those whose wait is limited start
// on loops that are there after a second: a process that starts late, or never, does not hold them back.
// Not here: which are limited, and where they start (restarts.ts).

import { setTimeout } from '../../lib/index.js';
import type { Placed } from './deployment.js';

/** Longest time that an instance waits, in ms: more than the start of a process takes on a machine with time. */
const maxWaitMs = 1000;
/** Timers may fire so much early, in ms. */
const timerMs = 1;

export class Orphans {
  readonly #late: (placed: readonly Placed[]) => void;
  /** By the loop that they were on. */
  #groups: (readonly Placed[])[] = [];
  /** When the wait of each began, in ms; it goes on when the next loop ends before the instance runs there. */
  readonly #since = new WeakMap<Placed, number>();

  /** `late` is called with instances that have waited too long, which are removed. */
  constructor(late: (placed: readonly Placed[]) => void) {
    this.#late = late;
  }

  /**
   * Adds instances of one loop; `isLimited`: those that wait for a limited time. Some that have waited too long already
   * are there until `takeLate`.
   */
  add(group: readonly Placed[], isLimited: (placed: Placed) => boolean): void {
    this.#groups.push(group);
    for (const each of group.filter(isLimited)) {
      if (!this.isLate(each)) this.limit(each, () => this.#late(this.takeLate()));
    }
  }

  /** Calls `late` when this one has waited too long, at once if it has; not where it has started meanwhile. */
  limit(placed: Placed, late: () => void): void {
    const now = performance.now();
    if (!this.#since.has(placed)) this.#since.set(placed, now);
    const ring = (): void => {
      if (this.isLate(placed)) late();
    };
    setTimeout(ring, Math.max(0, this.#leftMs(placed, now))).unref();
  }

  /** True: it has waited too long. */
  isLate(placed: Placed): boolean {
    return this.#leftMs(placed, performance.now()) <= timerMs;
  }

  /** Ends the wait of these; the next one begins anew. */
  reset(placed: readonly Placed[]): void {
    for (const each of placed) this.#since.delete(each);
  }

  /** Takes the instances of the first loops. */
  take(loops: number): Placed[] {
    return this.#groups.splice(0, loops).flat();
  }

  /** Takes those that have waited too long. */
  takeLate(): Placed[] {
    const late = this.#groups.flat().filter((each) => this.isLate(each));
    this.withdraw(late);
    return late;
  }

  withdraw(placed: readonly Placed[]): void {
    const others = this.#groups.map((group) => group.filter((each) => !placed.includes(each)));
    this.#groups = others.filter(({ length }) => length > 0);
  }

  #leftMs(placed: Placed, now: number): number {
    return maxWaitMs - (now - (this.#since.get(placed) ?? now));
  }
}
