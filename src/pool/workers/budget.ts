// The cores of this process, shared by all its pools: a worker that has work holds one, and a pool that
// finds none left waits until another pool's worker is idle. So two pools of four workers on four cores run
// four tasks at a time, not eight that slow each other down.
// Every pool may always have one worker at work: no pool starves, none can deadlock.

import { grantedCores } from '../../worker/index.js';

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

  /** Allows at least `workerCount` cores, for a pool of an explicit size. */
  raise(workerCount: number): void {
    this.#coreCount = Math.max(this.#coreCount, workerCount);
  }

  /**
   * Takes one core for a pool that holds `heldCores`. Returns false when none is left; then `onFree` is
   * called once, when there may be one.
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

  /** Removes a closed pool from the waiting ones. */
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
