// Tasks that wait for one host: those of a key, those that each host runs, and those that need a host of
// their own to begin in. A key keeps its host while that takes tasks; a new one goes to the host with the
// fewest keys.
// Not here: when a task is sent (dispatcher.ts).

import type { TaskHost } from './fleet.js';
import { TaskQueue } from './queue.js';
import type { Task } from './task.js';

export type Key = string | number;

/** The key that was used longest ago is forgotten first, so that a program may have any number. */
const mostKeys = 10_000;

export class Lanes {
  readonly #lanes = new Map<TaskHost, TaskQueue<Task>>();
  readonly #hostOfTask = new Map<Task, TaskHost>();
  /** In the order of their last use. */
  readonly #hostOfKey = new Map<Key, TaskHost>();
  readonly #keyCounts = new Map<TaskHost, number>();
  /** The task that was called last of those that have waited for a host. */
  readonly #newest = new Map<TaskHost, number>();

  /** Tasks that wait. */
  get length(): number {
    return this.#hostOfTask.size;
  }

  /** Hosts for which tasks wait. */
  get hosts(): readonly TaskHost[] {
    return [...this.#lanes.keys()];
  }

  /** The host of `key`; for a new one `choose` is asked first which there are. */
  hostOf(key: Key, choose: () => readonly TaskHost[]): TaskHost | undefined {
    let host = this.#hostOfKey.get(key);
    if (host !== undefined) this.#forget(key, host);
    if (host === undefined || !isThere(host)) {
      const counted = choose().filter(isThere);
      host = counted.reduce<TaskHost | undefined>((best, each) => {
        return best === undefined || this.#keysOf(each) < this.#keysOf(best) ? each : best;
      }, undefined);
      if (host === undefined) return undefined;
    }
    this.#hostOfKey.set(key, host);
    this.#keyCounts.set(host, this.#keysOf(host) + 1);
    if (this.#hostOfKey.size > mostKeys) {
      for (const [oldest, of] of this.#hostOfKey) {
        this.#forget(oldest, of);
        break;
      }
    }
    return host;
  }

  /** The host that is likely to be empty first: the fewest tasks wait for it and are in it, or it is to start. */
  emptiest(hosts: readonly TaskHost[]): TaskHost | undefined {
    const tasksOf = (host: TaskHost): number =>
      host.inFlight + (this.#lanes.get(host)?.length ?? 0) + (host.state === 'ready' ? 0 : 0.5);
    return hosts.filter(isThere).reduce<TaskHost | undefined>((best, each) => {
      return best === undefined || tasksOf(each) < tasksOf(best) ? each : best;
    }, undefined);
  }

  #keysOf(host: TaskHost): number {
    return this.#keyCounts.get(host) ?? 0;
  }

  #forget(key: Key, host: TaskHost): void {
    this.#hostOfKey.delete(key);
    const left = this.#keysOf(host) - 1;
    if (left > 0) this.#keyCounts.set(host, left);
    else this.#keyCounts.delete(host);
  }

  wait(task: Task, host: TaskHost): void {
    let lane = this.#lanes.get(host);
    if (lane === undefined) {
      lane = new TaskQueue();
      this.#lanes.set(host, lane);
    }
    this.#hostOfTask.set(task, host);
    lane.push(task, task.options.priority);
    const newest = this.#newest.get(host) ?? 0;
    if (task.id > newest) this.#newest.set(host, task.id);
    else this.#sort(lane, host);
  }

  /** A task that waited elsewhere comes before those that were called later. */
  #sort(lane: TaskQueue<Task>, host: TaskHost): void {
    const tasks: Task[] = [];
    for (let task = lane.shift(); task !== undefined; task = lane.shift()) tasks.push(task);
    for (const task of tasks.sort((a, b) => a.id - b.id)) lane.push(task, task.options.priority);
    this.#newest.set(host, tasks.at(-1)?.id ?? 0);
  }

  /** The next task for `host`. */
  peek(host: TaskHost): Task | undefined {
    return this.#lanes.get(host)?.peek();
  }

  /** True: a task that waits for `host` alone comes before `task`. */
  isReserved(host: TaskHost, task: Task): boolean {
    const first = this.peek(host);
    if (first === undefined) return false;
    const [mine, other] = [task.options.priority, first.options.priority];
    return mine === other ? first.id < task.id : other > mine;
  }

  /** Takes a task out, wherever it waits; false: it is not here. */
  remove(task: Task): boolean {
    const host = this.#hostOfTask.get(task);
    if (host === undefined) return false;
    this.#hostOfTask.delete(task);
    const lane = this.#lanes.get(host);
    lane?.remove(task, task.options.priority);
    if (lane?.length === 0) this.#lanes.delete(host);
    return true;
  }

  /** All that waits for `host`, which takes no more, in order. Its keys get another. */
  leave(host: TaskHost): Task[] {
    if (this.#keyCounts.delete(host)) {
      for (const [key, of] of this.#hostOfKey) if (of === host) this.#hostOfKey.delete(key);
    }
    this.#newest.delete(host);
    const tasks: Task[] = [];
    for (let task = this.peek(host); task !== undefined; task = this.peek(host)) {
      this.remove(task);
      tasks.push(task);
    }
    return tasks;
  }
}

/** True: it takes tasks, now or when it has started. */
export function isThere({ state, isRetiring }: TaskHost): boolean {
  return !isRetiring && (state === 'starting' || state === 'ready');
}
