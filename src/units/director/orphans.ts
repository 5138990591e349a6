// Instances of loops that have ended, until loops that replace theirs take them. After a second they start on loops
// that are there: a process that comes late, or never, holds no unit back. Not here: where they start (restarts.ts).

import { setTimeout } from '../../lib/index.js';
import type { Placed } from './deployment.js';

/** Longest time that an instance waits, in ms, from its loss on. A process of loops starts in half of it. */
const maxWaitMs = 1000;

export class Orphans {
  readonly #late: (placed: readonly Placed[]) => void;
  /** By the loop that they were on. */
  #groups: (readonly Placed[])[] = [];
  /** When the wait of each began, in ms; it goes on when the next loop ends before the instance runs there. */
  readonly #since = new WeakMap<Placed, number>();

  /** `late` is called with instances that have waited too long; they are orphans no more. */
  constructor(late: (placed: readonly Placed[]) => void) {
    this.#late = late;
  }

  /** Adds instances of one loop. Those that have waited too long are there until `takeLate`. */
  add(group: readonly Placed[]): void {
    this.#groups.push(group);
    if (!this.isLate(group)) this.limit(group, () => this.#late(this.#remove(group)));
  }

  /** Calls `late` when these have waited too long, at once if they have. */
  limit(placed: readonly Placed[], late: () => void): void {
    const now = performance.now();
    for (const each of placed) if (!this.#since.has(each)) this.#since.set(each, now);
    const leftMs = Math.min(...placed.map((each) => this.#leftMs(each, now)));
    setTimeout(late, Math.max(0, leftMs)).unref();
  }

  /** Returns whether one of these has waited too long. */
  isLate(placed: readonly Placed[]): boolean {
    return placed.some((each) => this.#leftMs(each, performance.now()) <= 0);
  }

  /** The wait of these is over, or begins anew. */
  reset(placed: readonly Placed[]): void {
    for (const each of placed) this.#since.delete(each);
  }

  /** Takes the instances of the first loops. */
  take(loops: number): Placed[] {
    return this.#groups.splice(0, loops).flat();
  }

  /** Takes those that have waited too long. */
  takeLate(): Placed[] {
    return this.#remove(this.#groups.flat().filter((each) => this.isLate([each])));
  }

  withdraw(placed: readonly Placed[]): void {
    const others = this.#groups.map((group) => group.filter((each) => !placed.includes(each)));
    this.#groups = others.filter(({ length }) => length > 0);
  }

  /** Removes these; returns those that were there. */
  #remove(placed: readonly Placed[]): Placed[] {
    const there = this.#groups.flat().filter((each) => placed.includes(each));
    this.withdraw(placed);
    return there;
  }

  #leftMs(placed: Placed, now: number): number {
    return maxWaitMs - (now - (this.#since.get(placed) ?? now));
  }
}
