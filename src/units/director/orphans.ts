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

  /** Adds instances of one loop. */
  add(group: readonly Placed[]): void {
    this.#groups.push(group);
    this.limit(group, (late) => this.#late(this.#remove(late)));
  }

  /** Calls `late` when these have waited too long: at once, if they have already. */
  limit(placed: readonly Placed[], late: (placed: readonly Placed[]) => void): void {
    const now = performance.now();
    for (const each of placed) if (!this.#since.has(each)) this.#since.set(each, now);
    const waited = Math.max(0, ...placed.map((each) => now - (this.#since.get(each) ?? now)));
    setTimeout(() => late(placed), Math.max(0, maxWaitMs - waited)).unref();
  }

  /** The wait of these is over, or begins anew. */
  reset(placed: readonly Placed[]): void {
    for (const each of placed) this.#since.delete(each);
  }

  /** Takes the instances of the first loops. */
  take(loops: number): Placed[] {
    return this.#groups.splice(0, loops).flat();
  }

  /** Removes these; returns those that were there. */
  #remove(placed: readonly Placed[]): Placed[] {
    const there = this.#groups.flat().filter((each) => placed.includes(each));
    this.withdraw(placed);
    return there;
  }

  withdraw(placed: readonly Placed[]): void {
    const others = this.#groups.map((group) => group.filter((each) => !placed.includes(each)));
    this.#groups = others.filter(({ length }) => length > 0);
  }
}
