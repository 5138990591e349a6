// The pinned functions of a pool. One that no call can change stays in the workers when its map is over: the next
// map with an equal function finds it there, compiled and with V8's feedback. A mapper that is written in place
// is such a function as long as it captures primitive values, imports and functions alone.
// Not here: running chunks (pool.ts), which functions no call can change (context/).

import type { FunctionSnapshot } from '../../context/index.js';

/** Functions without a map that stay in a pool. */
const maxIdlePins = 32;
/** Size of the state of one that stays. */
const maxStateBytes = 1024;

/** A pinned function for one map. */
export interface Pin {
  readonly snapshot: FunctionSnapshot;
  /** Ends its use; once. */
  release(): void;
}

/** Pins functions, and drops them here and in the workers. */
export interface PinOwner {
  pin(snapshot: FunctionSnapshot): FunctionSnapshot;
  drop(pinned: FunctionSnapshot): void;
}

interface Kept {
  readonly snapshot: FunctionSnapshot;
  uses: number;
}

export class MapperPins {
  readonly #owner: PinOwner;
  /** By code and state, the least recently used first. */
  readonly #kept = new Map<string, Kept>();
  #isClosed = false;

  constructor(owner: PinOwner) {
    this.#owner = owner;
  }

  pin(snapshot: FunctionSnapshot): Pin {
    const key = this.#isClosed ? undefined : keyOf(snapshot);
    if (key === undefined) {
      const pinned = this.#owner.pin(snapshot);
      const release = (): void => {
        if (pinned !== snapshot) this.#owner.drop(pinned); // else it is in the workers for good
      };
      return { snapshot: pinned, release };
    }
    const kept = this.#kept.get(key) ?? { snapshot: this.#owner.pin(snapshot), uses: 0 };
    kept.uses += 1;
    this.#kept.delete(key);
    this.#kept.set(key, kept);
    return { snapshot: kept.snapshot, release: () => this.#release(kept) };
  }

  #release(kept: Kept): void {
    kept.uses -= 1;
    this.#dropIdle(this.#isClosed ? 0 : maxIdlePins);
  }

  /** Drops those without a map; the others follow with the end of theirs. */
  close(): void {
    this.#isClosed = true;
    this.#dropIdle(0);
  }

  #dropIdle(maxIdle: number): void {
    let idle = [...this.#kept.values()].filter(({ uses }) => uses === 0).length;
    for (const [key, { snapshot, uses }] of this.#kept) {
      if (idle <= maxIdle) return;
      if (uses > 0) continue;
      this.#kept.delete(key);
      this.#owner.drop(snapshot);
      idle -= 1;
    }
  }
}

/** Equal for functions of equal code and state; `undefined`: a call may change what it captured. */
function keyOf({ id, state, isSteady, buffers }: FunctionSnapshot): string | undefined {
  const isShort = state !== undefined && state.length <= maxStateBytes;
  if (!isSteady || !isShort || buffers.length > 0) return undefined;
  return `${id} ${Buffer.from(state).toString('latin1')}`;
}
