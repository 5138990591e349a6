// The plan of each function and class of a payload: which of its captured values are there when it is made,
// which come later, and which may be replaced when the same function or class arrives again.
// Not here: the text for a plan (factory.ts).

import { type Payload, special } from '../protocol.js';
import { type Plan, variable } from './factory.js';

/**
 * - `once`: a function that is made anew for each payload
 * - `constant`: a function that stays, with captures that cannot change
 * - `class`: stays, and takes newer captures over
 */
export type Life = 'once' | 'constant' | 'class';

export class Plans {
  readonly #payload: Payload;
  readonly #isMade: readonly boolean[];
  /** `[slot, special]`, flat, by the slots of a function or class. */
  readonly #held = new Map<unknown, number[]>();

  constructor(payload: Payload, isMade: readonly boolean[]) {
    this.#payload = payload;
    this.#isMade = isMade;
    for (const entry of payload.specials) {
      if (entry[0] === special.function || entry[0] === special.class) this.#held.set(entry[3], []);
    }
  }

  /** Notes that the special at `index` is put into `container`. */
  note(container: unknown, key: unknown, index: number): void {
    if (typeof key === 'number') this.#held.get(container)?.push(key, index);
  }

  /** `undefined`: the usual plan. `isAwaiting`: true for functions that are made after classes. */
  planOf(
    slots: readonly unknown[],
    life: Life,
    isAwaiting: (index: number) => boolean,
  ): Plan | undefined {
    const held = this.#held.get(slots) ?? [];
    if (life === 'once' && held.length === 0) return undefined;
    const plan = slots.map((value) => ofValue(value, life));
    for (let at = 0; at < held.length; at += 2) {
      const [slot = 0, index = 0] = [held[at], held[at + 1]];
      plan[slot] = this.#ofSpecial(index, life, plan[slot] ?? variable, isAwaiting);
    }
    return plan.join('');
  }

  #ofSpecial(
    index: number,
    life: Life,
    known: string,
    isAwaiting: (index: number) => boolean,
  ): string {
    const isMade = this.#isMade[index] === true;
    const kind = this.#payload.specials[index]?.[0];
    if (life === 'class') return isMade ? known : variable;
    if (life === 'constant' && isRemadeEachTime(kind)) return variable;
    if (isMade) return '0';
    if (kind === special.bound || kind === special.received) return '3';
    return kind === special.function && !isAwaiting(index) ? '1' : '2';
  }
}

/** The binding of a slot by its value, where that is no special. */
function ofValue(value: unknown, life: Life): string {
  if (life === 'once') return '0';
  const isObject = typeof value === 'object' && value !== null;
  if (life === 'constant') return isObject ? variable : '0';
  // A variable of a class was perhaps not initialised yet.
  return isObject || typeof value === 'function' || value === undefined ? variable : '0';
}

/** True: each payload makes a value of its own for such a special. */
function isRemadeEachTime(kind: unknown): boolean {
  return kind === special.bound || kind === special.received || kind === special.frozen;
}
