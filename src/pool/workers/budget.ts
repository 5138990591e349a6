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

/** The cores that the workers of one pool hold. */
export class PoolCores {
  readonly #budget: CoreBudget;
  readonly #onFree: () => void;
  #held = 0;
  /** Workers that are to end, and go on without a core. */
  readonly #without = new WeakSet<object>();

  /** `onFree`: called when there may be a core again. */
  constructor(budget: CoreBudget, onFree: () => void) {
    this.#budget = budget;
    this.#onFree = onFree;
  }

  get areSpent(): boolean {
    return this.#budget.isSpent;
  }

  /** Takes one for a worker that gets its first task; false: none is left now. */
  tryTake(): boolean {
    if (!this.#budget.tryTake(this.#held, this.#onFree)) return false;
    this.#held += 1;
    return true;
  }

  /** Takes one for a worker that runs already, whether there is a core or not. */
  take(): void {
    this.#budget.tryTake(0, this.#onFree);
    this.#held += 1;
  }

  /** Gives back that of a worker with nothing to do. */
  give(worker: object): void {
    if (this.#without.has(worker)) return;
    this.#held -= 1;
    this.#budget.give();
  }

  /** Gives back that of a worker which works on. */
  giveForGood(worker: object): void {
    this.give(worker);
    this.#without.add(worker);
  }

  /** The pool is closed. */
  end(): void {
    this.#budget.forget(this.#onFree);
  }
}

let processBudget: CoreBudget | undefined;

/** The one budget of this process. */
export function budget(): CoreBudget {
  processBudget ??= new CoreBudget(grantedCores().count);
  return processBudget;
}
