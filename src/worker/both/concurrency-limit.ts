// Limits the tasks that run in a worker at a time, from all its parents together: a worker that several
// parents share still runs one task after the other, in the order in which calls came.

export class ConcurrencyLimit {
  readonly #concurrentTasks: number;
  /** Number of tasks that have been called and have not ended. */
  #runningTasks = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(concurrentTasks: number) {
    this.#concurrentTasks = concurrentTasks;
  }

  /** True: no other task can run before one that is called now has ended. */
  get isOne(): boolean {
    return this.#concurrentTasks === 1;
  }

  /** True: a call may begin now, because none waits and there is room. */
  get hasRoom(): boolean {
    return this.#runningTasks < this.#concurrentTasks && this.#waiting.length === 0;
  }

  /** Calls `begin` when there is room, after all that wait already. */
  wait(begin: () => void): void {
    this.#waiting.push(begin);
  }

  /** Counts a task that goes on after its call has returned. */
  acquire(): void {
    this.#runningTasks += 1;
  }

  /** Uncounts such a task when it has ended, and begins waiting calls. */
  release(): void {
    this.#runningTasks -= 1;
    while (this.#runningTasks < this.#concurrentTasks) {
      const begin = this.#waiting.shift();
      if (begin === undefined) return;
      begin();
    }
  }
}
