// The queue of waiting tasks: first come, first served within a priority, higher priorities first. Almost
// every program uses one priority, so each has its own array-backed queue, and there are few.

/** Minimum number of empty places before they are freed; freed once they are the majority. */
const manyGone = 1024;

/**
 * Queue over an array, in which every step is O(1) on average: the front moves through it both ways, and an
 * item removed in the middle leaves a tombstone until its turn comes.
 */
class Fifo<T> {
  #items: (T | undefined)[] = [];
  #front = 0;
  /** Removed items whose places are still here. */
  readonly #gone = new Set<T>();

  get length(): number {
    return this.#items.length - this.#front - this.#gone.size;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  unshift(items: readonly T[]): void {
    if (items.length > this.#front) this.#makeRoom(items.length);
    this.#front -= items.length;
    for (const [at, item] of items.entries()) this.#items[this.#front + at] = item;
  }

  /** Makes more room than needed, so that the next items fit; less than `#leaveFront` frees. */
  #makeRoom(count: number): void {
    const kept = this.#items.slice(this.#front);
    const room = count + Math.floor(kept.length / 4);
    this.#items = Array.from<T | undefined>({ length: room }).concat(kept);
    this.#front = room;
  }

  peek(): T | undefined {
    this.#skipGone();
    return this.#items[this.#front];
  }

  shift(): T | undefined {
    this.#skipGone();
    if (this.#front === this.#items.length) return undefined;
    const item = this.#items[this.#front];
    this.#leaveFront();
    this.#skipGone(); // frees removed items now, even if no other call follows
    return item;
  }

  #skipGone(): void {
    while (this.#gone.size > 0) {
      const item = this.#items[this.#front];
      if (item === undefined || !this.#gone.delete(item)) return;
      this.#leaveFront();
    }
  }

  #leaveFront(): void {
    this.#items[this.#front] = undefined;
    this.#front += 1;
    if (this.#front === this.#items.length) {
      this.#items.length = 0;
      this.#front = 0;
    } else if (this.#front >= manyGone && this.#front * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#front);
      this.#front = 0;
    }
  }

  /** Removes an item that is here. */
  remove(item: T): void {
    this.#gone.add(item);
    if (this.#gone.size < manyGone && this.length > 0) return;
    if (this.#gone.size < this.length) return;
    const gone = this.#gone;
    this.#items = this.#items
      .slice(this.#front)
      .filter((each) => each !== undefined && !gone.has(each));
    this.#front = 0;
    gone.clear();
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

  /** Puts tasks back in front of their lane, in this order. */
  unshift(tasks: readonly T[], priority: number): void {
    this.#lane(priority).unshift(tasks);
    this.#length += tasks.length;
  }

  /** Returns the next task; `undefined` when none waits. */
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

  /** Removes a task that is here, wherever it stands. */
  remove(task: T, priority: number): void {
    this.#lane(priority).remove(task);
    this.#length -= 1;
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
