// The common part of the methods of collections: each is atomic alone, and a part of a transaction that runs.

import { atomically } from '../atomically.js';
import type { Attempt } from '../attempt.js';
import { registerKind, type Stand } from '../collection.js';
import { insideOf, nameOfVariable, runningAttempt, type TVar } from '../tvar.js';

/** Calls `work` in the transaction that runs, or in one of its own. */
export function inTransaction<T>(work: (attempt: Attempt) => T): T {
  const running = runningAttempt();
  if (running === undefined) return atomically(() => work(insideOf('a collection')));
  if (running.ending !== undefined) throw running.end(running.ending);
  return running.guard(() => work(running));
}

/**
 * Collections of one kind in this thread, by the variable that stands for each: two objects for one would not see each
 * other's writes.
 */
export class Handles<T extends object> {
  readonly #kind: number;
  readonly #make: (stand: Stand) => T;
  readonly #known = new WeakMap<TVar<unknown>, WeakRef<T>>();

  constructor(kind: number, make: (stand: Stand) => T) {
    this.#kind = kind;
    this.#make = make;
    registerKind(kind, (first) => this.of(first));
  }

  of(first: TVar<unknown>): T {
    const known = this.#known.get(first)?.deref();
    if (known !== undefined) return known;
    const made = this.#make({ ...nameOfVariable(first), kind: this.#kind, first });
    this.#known.set(first, new WeakRef(made));
    return made;
  }
}
