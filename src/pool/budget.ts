// The cores of this process, shared by all its pools: a worker that has work holds one, and a pool that
// finds none left waits until another pool's worker is idle. Two pools of four workers on four cores so
// run four tasks at a time, not eight that slow each other down.
// Every pool may have one worker at work whatever the others do: no pool starves, none can deadlock.

import { grantedCores } from '../worker/index.js';

export class CoreBudget {
  #coreCount: number;
  #usedCores = 0;
  readonly #waiting = new Set<() => void>();

  constructor(coreCount: number) {
    this.#coreCount = coreCount;
  }

  get coreCount(): number {
    return this.#coreCount;
  }

  get usedCores(): number {
    return this.#usedCores;
  }

  get isSpent(): boolean {
    return this.#usedCores >= this.#coreCount;
  }

  /** A pool of `workerCount` workers was asked for in so many words: that many may work at a time. */
  raise(workerCount: number): void {
    this.#coreCount = Math.max(this.#coreCount, workerCount);
  }

  /**
   * One core for a pool that holds `heldCores`; false when none is left: `onFree` is called once,
   * when there may be one.
   */
  tryTake(heldCores: number, onFree: () => void): boolean {
    if (heldCores > 0 && this.#usedCores >= this.#coreCount) {
      this.#waiting.add(onFree);
      return false;
    }
    this.#waiting.delete(onFree);
    this.#usedCores += 1;
    return true;
  }

  give(): void {
    this.#usedCores -= 1;
    const [next] = this.#waiting;
    if (next === undefined) return;
    this.#waiting.delete(next);
    next();
  }

  /** The pool is gone: it waits for nothing. */
  forget(onFree: () => void): void {
    this.#waiting.delete(onFree);
  }
}

let processBudget: CoreBudget | undefined;

/** The one budget of this process. */
export function budget(): CoreBudget {
  processBudget ??= new CoreBudget(grantedCores().count);
  return processBudget;
}
