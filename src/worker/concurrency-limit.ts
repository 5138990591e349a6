// How many tasks run in a worker at a time, whoever sent them: a worker that several parents share still
// does one thing after the other, in the order in which calls came.

export class ConcurrencyLimit {
  readonly #concurrentTasks: number;
  /** Tasks that have been called and have not ended. */
  #runningTasks = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(concurrentTasks: number) {
    this.#concurrentTasks = concurrentTasks;
  }

  /** Whether no other task can run before one that is called now has ended. */
  get isOne(): boolean {
    return this.#concurrentTasks === 1;
  }

  /** Whether a call may begin now: none waits, and there is room. */
  get hasRoom(): boolean {
    return this.#runningTasks < this.#concurrentTasks && this.#waiting.length === 0;
  }

  /** `begin` is called when there is room, after all that wait already. */
  wait(begin: () => void): void {
    this.#waiting.push(begin);
  }

  /** A task goes on after its call has returned. */
  acquire(): void {
    this.#runningTasks += 1;
  }

  /** Such a task has ended. */
  release(): void {
    this.#runningTasks -= 1;
    while (this.#runningTasks < this.#concurrentTasks) {
      const begin = this.#waiting.shift();
      if (begin === undefined) return;
      begin();
    }
  }
}
