// A counter that many processes change at once: each adds to a variable of its own, and who reads it adds them up.
// The idea is that of LongAdder (Lea, java.util.concurrent).

import { invalid } from '../../lib/index.js';
import type { Attempt } from '../attempt.js';
import { Collection, endIn, type Stand } from '../collection.js';
import { KIND_COUNTER } from '../kinds.js';
import { asStand, freeIn, partOf, type TVar, threadState, tvar, typed } from '../tvar.js';
import { Handles, inTransaction } from './operation.js';

/** Variables of a counter. */
const parts = 16;

/** A number in shared memory that processes add to without conflicts. */
export interface TCounter {
  /** Adds `change`, by default 1. Throws `OPTION_INVALID` for anything else than a number. */
  add(change?: number): void;
  /** The sum. A transaction that reads it conflicts with each that adds. */
  readonly value: number;
}

class SharedCounter extends Collection implements TCounter {
  /** Holds the list of the variables. */
  readonly #first: TVar<readonly TVar<number>[]>;

  constructor(stand: Stand) {
    super(stand);
    this.#first = typed(stand.first);
  }

  static of(this: void, first: TVar<unknown>): SharedCounter {
    return counters.of(first);
  }

  add(change = 1): void {
    if (typeof change !== 'number') throw invalid('the change', change, 'a number');
    inTransaction(() => {
      const own = this.#first.get()[(threadState().space.at.ownEpoch >> 6) & (parts - 1)];
      own?.set(own.get() + change);
    });
  }

  get value(): number {
    return inTransaction(() => this.#first.get().reduce((sum, part) => sum + part.get(), 0));
  }

  override [endIn](attempt: Attempt): void {
    for (const part of this.#first.get()) freeIn(attempt, part);
    freeIn(attempt, this.#first);
  }
}

const counters = new Handles(KIND_COUNTER, (stand) => new SharedCounter(stand));

/** Makes a counter. Throws `SHARED_MEMORY_FULL`, `STM_CROWDED`, `NATIVE_MISSING`, `NATIVE_REFUSED`. */
export function tcounter(initial = 0): TCounter {
  if (typeof initial !== 'number') throw invalid('the first value', initial, 'a number');
  return SharedCounter.of(
    inTransaction(() => {
      const first = tvar<readonly TVar<number>[]>([]);
      first.set(Array.from({ length: parts }, (_, at) => partOf(first, at === 0 ? initial : 0)));
      return asStand(first);
    }),
  );
}
