// The workers of a node as a count: each is lent to a pool, runs a durable task, or is free.

export class Slots {
  #onChange: () => void = () => {};
  readonly count: number;
  #used = 0;
  #waiting: (() => void)[] = [];

  constructor(count: number) {
    this.count = count;
  }

  get isFree(): boolean {
    return this.#used < this.count;
  }

  /** Sets what is called after a worker was taken or returned. */
  handleChange(onChange: () => void): void {
    this.#onChange = onChange;
  }

  /** Returns whether a worker was free. */
  take(): boolean {
    if (!this.isFree) return false;
    this.#used += 1;
    this.#onChange();
    return true;
  }

  giveBack(): void {
    this.#used -= 1;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
    this.#onChange();
  }

  /** Resolves when a worker is free. */
  async free(): Promise<void> {
    while (!this.isFree) {
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve);
      });
    }
  }
}
