// Where tasks wait: first come, first served within a priority, higher priorities first. Almost every
// program uses one priority, so each has its own array-backed queue and the lists are few.

/** A queue over an array whose front is forgotten in pieces: `shift` is O(1) on average. */
class Fifo<T> {
  #items: (T | undefined)[] = [];
  #front = 0;

  get length(): number {
    return this.#items.length - this.#front;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  unshift(items: readonly T[]): void {
    this.#items.splice(0, this.#front, ...items);
    this.#front = 0;
  }

  peek(): T | undefined {
    return this.#items[this.#front];
  }

  shift(): T | undefined {
    const item = this.#items[this.#front];
    if (this.#front === this.#items.length) return undefined;
    this.#items[this.#front] = undefined;
    this.#front += 1;
    if (this.#front === this.#items.length) {
      this.#items.length = 0;
      this.#front = 0;
    } else if (this.#front >= 1024 && this.#front * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#front);
      this.#front = 0;
    }
    return item;
  }

  remove(item: T): boolean {
    const index = this.#items.indexOf(item, this.#front);
    if (index < 0) return false;
    this.#items.splice(index, 1);
    return true;
  }
}

export class TaskQueue<T> {
  /** Highest priority first. */
  readonly #lanes: { readonly priority: number; readonly tasks: Fifo<T> }[] = [];
  #length = 0;

  get length(): number {
    return this.#length;
  }

  push(task: T, priority: number): void {
    this.#lane(priority).push(task);
    this.#length += 1;
  }

  /** Puts tasks that were here before back in front of their lane, in this order. */
  unshift(tasks: readonly T[], priority: number): void {
    this.#lane(priority).unshift(tasks);
    this.#length += tasks.length;
  }

  /** The task that is next; `undefined` when none waits. */
  peek(): T | undefined {
    if (this.#length === 0) return undefined;
    for (const { tasks } of this.#lanes) if (tasks.length > 0) return tasks.peek();
    return undefined;
  }

  shift(): T | undefined {
    if (this.#length === 0) return undefined;
    for (const { tasks } of this.#lanes) {
      if (tasks.length === 0) continue;
      this.#length -= 1;
      return tasks.shift();
    }
    return undefined;
  }

  /** Takes one task out, wherever it stands; false when it is not here. */
  remove(task: T, priority: number): boolean {
    if (!this.#lane(priority).remove(task)) return false;
    this.#length -= 1;
    return true;
  }

  #lane(priority: number): Fifo<T> {
    let index = 0;
    for (; index < this.#lanes.length; index += 1) {
      const lane = this.#lanes[index];
      if (lane === undefined || lane.priority < priority) break;
      if (lane.priority === priority) return lane.tasks;
    }
    const tasks = new Fifo<T>();
    this.#lanes.splice(index, 0, { priority, tasks });
    return tasks;
  }
}
