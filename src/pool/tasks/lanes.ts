// Lanes: tasks that wait for one worker, for the reasons in bound-tasks.ts. A key keeps its worker while
// that takes tasks; a new key goes to the worker with the fewest keys.
// Not here: when a task is sent (dispatcher.ts).

import { TaskQueue } from '../queue.js';
import type { Task } from '../task.js';
import type { TaskWorker } from '../workers/worker-manager.js';

export type Key = string | number;

/**
 * Maximum number of keys; beyond it the least recently used is forgotten, so a program may use any number.
 */
const maxKeys = 10_000;

export class Lanes {
  readonly #lanes = new Map<TaskWorker, TaskQueue<Task>>();
  readonly #workerOfTask = new Map<Task, TaskWorker>();
  /** In the order of last use. */
  readonly #workerOfKey = new Map<Key, TaskWorker>();
  readonly #keyCounts = new Map<TaskWorker, number>();
  /** Highest id among the tasks that have waited for a worker. */
  readonly #newest = new Map<TaskWorker, number>();

  /** Number of waiting tasks. */
  get length(): number {
    return this.#workerOfTask.size;
  }

  /** Workers for which tasks wait. */
  get workers(): readonly TaskWorker[] {
    return [...this.#lanes.keys()];
  }

  /** Returns the worker of `key`; for a new key one of those that `choose` returns. */
  workerOf(key: Key, choose: () => readonly TaskWorker[]): TaskWorker | undefined {
    let worker = this.#workerOfKey.get(key);
    if (worker !== undefined) this.#forget(key, worker);
    if (worker === undefined || !isThere(worker)) {
      const counted = choose().filter(isThere);
      worker = counted.reduce<TaskWorker | undefined>((best, each) => {
        return best === undefined || this.#keysOf(each) < this.#keysOf(best) ? each : best;
      }, undefined);
      if (worker === undefined) return undefined;
    }
    this.#workerOfKey.set(key, worker);
    this.#keyCounts.set(worker, this.#keysOf(worker) + 1);
    if (this.#workerOfKey.size > maxKeys) {
      for (const [oldest, of] of this.#workerOfKey) {
        this.#forget(oldest, of);
        break;
      }
    }
    return worker;
  }

  /**
   * Returns the worker that is likely to be empty first: the one with the fewest tasks, waiting or in
   * flight. One that is starting counts half a task more.
   */
  emptiest(workers: readonly TaskWorker[]): TaskWorker | undefined {
    const tasksOf = (worker: TaskWorker): number =>
      worker.inFlight +
      (this.#lanes.get(worker)?.length ?? 0) +
      (worker.state === 'ready' ? 0 : 0.5);
    return workers.filter(isThere).reduce<TaskWorker | undefined>((best, each) => {
      return best === undefined || tasksOf(each) < tasksOf(best) ? each : best;
    }, undefined);
  }

  #keysOf(worker: TaskWorker): number {
    return this.#keyCounts.get(worker) ?? 0;
  }

  #forget(key: Key, worker: TaskWorker): void {
    this.#workerOfKey.delete(key);
    const left = this.#keysOf(worker) - 1;
    if (left > 0) this.#keyCounts.set(worker, left);
    else this.#keyCounts.delete(worker);
  }

  wait(task: Task, worker: TaskWorker): void {
    let lane = this.#lanes.get(worker);
    if (lane === undefined) {
      lane = new TaskQueue();
      this.#lanes.set(worker, lane);
    }
    this.#workerOfTask.set(task, worker);
    lane.push(task, task.options.priority);
    const newest = this.#newest.get(worker) ?? 0;
    if (task.id > newest) this.#newest.set(worker, task.id);
    else this.#sort(lane, worker);
  }

  /** Sorts the lane, because a task that waited elsewhere comes before those that were called later. */
  #sort(lane: TaskQueue<Task>, worker: TaskWorker): void {
    const tasks: Task[] = [];
    for (let task = lane.shift(); task !== undefined; task = lane.shift()) tasks.push(task);
    for (const task of tasks.sort((a, b) => a.id - b.id)) lane.push(task, task.options.priority);
    this.#newest.set(worker, tasks.at(-1)?.id ?? 0);
  }

  /** Returns the next task for `worker`. */
  peek(worker: TaskWorker): Task | undefined {
    return this.#lanes.get(worker)?.peek();
  }

  /** True: a task that waits for `worker` alone comes before `task`. */
  isReserved(worker: TaskWorker, task: Task): boolean {
    const first = this.peek(worker);
    if (first === undefined) return false;
    const [mine, other] = [task.options.priority, first.options.priority];
    return mine === other ? first.id < task.id : other > mine;
  }

  /** Removes a waiting task; false: it is not here. */
  remove(task: Task): boolean {
    const worker = this.#workerOfTask.get(task);
    if (worker === undefined) return false;
    this.#workerOfTask.delete(task);
    const lane = this.#lanes.get(worker);
    lane?.remove(task, task.options.priority);
    if (lane?.length === 0) this.#lanes.delete(worker);
    return true;
  }

  /**
   * Removes and returns, in order, all tasks of `worker`, which takes no more. Its keys get another worker.
   */
  leave(worker: TaskWorker): Task[] {
    if (this.#keyCounts.delete(worker)) {
      for (const [key, of] of this.#workerOfKey) if (of === worker) this.#workerOfKey.delete(key);
    }
    this.#newest.delete(worker);
    const tasks: Task[] = [];
    for (let task = this.peek(worker); task !== undefined; task = this.peek(worker)) {
      this.remove(task);
      tasks.push(task);
    }
    return tasks;
  }
}

/** True: the worker takes tasks, now or when it has started. */
export function isThere({ state, isRetiring }: TaskWorker): boolean {
  return !isRetiring && (state === 'starting' || state === 'ready');
}
