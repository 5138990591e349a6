// Tasks that one host alone may run: those of a key, those that each host runs, and those that need a host of
// their own to begin in. They wait in the lane of that host (lanes.ts), beside the queue.
// Not here: the queue, and what sending a task is (dispatcher.ts).

import type { CodedError } from '../errors.js';
import type { Fleet, TaskHost } from './fleet.js';
import { isThere, Lanes } from './lanes.js';
import { hostGone } from './refusals.js';
import type { Task } from './task.js';

export interface BoundTasksOptions {
  readonly fleet: Fleet;
  readonly concurrentTasks: number;
  readonly isQueueEmpty: () => boolean;
  /** Sends a task to a host if it can begin there at once; false: nothing was done. */
  readonly trySendTo: (task: Task, host: TaskHost) => boolean;
  /** Puts a task to the front of the queue. */
  readonly requeue: (task: Task) => void;
  readonly refuse: (task: Task, error: CodedError) => void;
}

export class BoundTasks {
  readonly #options: BoundTasksOptions;
  readonly #lanes = new Lanes();

  constructor(options: BoundTasksOptions) {
    this.#options = options;
  }

  /** Tasks that wait. */
  get length(): number {
    return this.#lanes.length;
  }

  /** True: no task waits for `host` alone. */
  isNext(host: TaskHost): boolean {
    return this.#lanes.peek(host) === undefined;
  }

  wait(task: Task, host: TaskHost): void {
    this.#lanes.wait(task, host);
  }

  /** Takes a task out, wherever it waits; false: it is not here. */
  remove(task: Task): boolean {
    return this.#lanes.remove(task);
  }

  /** Takes out all that waits. */
  takeAll(): Task[] {
    return this.#lanes.hosts.flatMap((host) => this.#lanes.leave(host));
  }

  /** As `leave`, for each host for which tasks wait. */
  leaveGone(): void {
    if (this.#lanes.length > 0) for (const host of this.#lanes.hosts) this.leave(host);
  }

  /** What waits for a host that takes no more goes to the front of the queue; of `runOnEach` it is refused. */
  leave(host: TaskHost): void {
    if (isThere(host)) return;
    for (const task of this.#lanes.leave(host).reverse()) {
      if (task.options.hostId === undefined) this.#options.requeue(task);
      else this.#options.refuse(task, hostGone(task.name));
    }
  }

  /** Sends what can be sent. */
  pump(): void {
    if (this.#lanes.length === 0) return;
    this.#moveHandOvers();
    for (const host of this.#lanes.hosts) this.#pumpLane(host);
  }

  /** Sends what waits for an empty host to one that is empty earlier than its own. */
  #moveHandOvers(): void {
    for (const host of this.#lanes.hosts) {
      const task = this.#lanes.peek(host);
      if (task === undefined || !this.needsEmptyHost(task) || isNamed(task)) continue;
      const empty = this.#options.fleet.hosts.find(
        (each) => each.isOpen && each.inFlight === 0 && this.isNext(each),
      );
      if (empty !== undefined && this.#options.trySendTo(task, empty)) this.#lanes.remove(task);
    }
  }

  /** Sends what waits for `host` alone. */
  #pumpLane(host: TaskHost): void {
    let task = this.#lanes.peek(host);
    while (task !== undefined && this.#options.trySendTo(task, host)) {
      this.#lanes.remove(task);
      task = this.#lanes.peek(host);
    }
  }

  /** The host whose lane a new task is for. Where tasks wait for any host, older ones of its key may be among them. */
  laneOf(task: Task): TaskHost | undefined {
    return this.isBound(task) && this.#options.isQueueEmpty() ? this.#hostOf(task) : undefined;
  }

  /** True: one host alone may run it. */
  isBound(task: Task): boolean {
    return isNamed(task) || this.needsEmptyHost(task);
  }

  /** What it hands over goes once: it must not be with a host that a neighbour blocks before it begins. */
  needsEmptyHost({ options: { transfer } }: Task): boolean {
    return transfer.length > 0 && this.#options.concurrentTasks > 1;
  }

  /** The one host for a task that is bound to one; `undefined`: none is there. */
  #hostOf(task: Task): TaskHost | undefined {
    const { key, hostId } = task.options;
    if (hostId !== undefined) return this.#options.fleet.hosts.find(({ id }) => id === hostId);
    if (key !== undefined) return this.#lanes.hostOf(key, () => this.#candidates());
    return this.#lanes.emptiest(this.#candidates());
  }

  #candidates(): readonly TaskHost[] {
    const { fleet } = this.#options;
    if (!fleet.hasIdleHost) fleet.warm(this.#lanes.hosts.length + 1);
    return fleet.hosts;
  }

  /** Sends a bound task of the queue, or lets it wait in a lane; false: it has no host yet. */
  trySend(task: Task): boolean {
    const host = this.#hostOf(task);
    if (host === undefined) {
      if (task.options.hostId === undefined) return false;
      this.#options.refuse(task, hostGone(task.name));
      return true;
    }
    if (!this.isNext(host) || !this.#options.trySendTo(task, host)) this.#lanes.wait(task, host);
    return true;
  }

  /** Hosts that are not reserved for a task that came before. */
  hostsFor(task: Task): readonly TaskHost[] {
    if (this.#lanes.length === 0) return this.#options.fleet.hosts;
    return this.#options.fleet.hosts.filter((host) => !this.#lanes.isReserved(host, task));
  }
}

/** True: its options say which host runs it. */
function isNamed({ options: { key, hostId } }: Task): boolean {
  return key !== undefined || hostId !== undefined;
}
