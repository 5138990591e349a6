// Tasks bound to one worker: tasks of a key, tasks of `runOnEach`, and tasks that must begin in an empty
// worker. They wait in the lane of that worker (lanes.ts), beside the queue.
// Not here: the queue, and sending a task (dispatcher.ts).

import type { CodedError } from '../../errors.js';
import { workerGone } from '../refusals.js';
import type { Task } from '../task.js';
import type { TaskWorker, WorkerManager } from '../workers/worker-manager.js';
import { isThere, Lanes } from './lanes.js';

export interface BoundTasksOptions {
  readonly manager: WorkerManager;
  readonly concurrentTasks: number;
  readonly isQueueEmpty: () => boolean;
  /** Sends a task to a worker if it can begin there at once; false: nothing was done. */
  readonly trySendTo: (task: Task, worker: TaskWorker) => boolean;
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

  /** Number of waiting tasks. */
  get length(): number {
    return this.#lanes.length;
  }

  /** True: no task waits for `worker` alone. */
  isNext(worker: TaskWorker): boolean {
    return this.#lanes.peek(worker) === undefined;
  }

  wait(task: Task, worker: TaskWorker): void {
    this.#lanes.wait(task, worker);
  }

  /** Removes a waiting task; false: it is not here. */
  remove(task: Task): boolean {
    return this.#lanes.remove(task);
  }

  /** Removes and returns all waiting tasks. */
  takeAll(): Task[] {
    return this.#lanes.workers.flatMap((worker) => this.#lanes.leave(worker));
  }

  /** Calls `leave` for each worker for which tasks wait. */
  leaveGone(): void {
    if (this.#lanes.length > 0) for (const worker of this.#lanes.workers) this.leave(worker);
  }

  /**
   * Empties the lane of a worker that takes no more: tasks go to the front of the queue; those of
   * `runOnEach` are refused.
   */
  leave(worker: TaskWorker): void {
    if (isThere(worker)) return;
    for (const task of this.#lanes.leave(worker).reverse()) {
      if (task.options.workerId === undefined) this.#options.requeue(task);
      else this.#options.refuse(task, workerGone(task.name));
    }
  }

  /** Sends as many waiting tasks as possible. */
  pump(): void {
    if (this.#lanes.length === 0) return;
    this.#moveHandOvers();
    for (const worker of this.#lanes.workers) this.#pumpLane(worker);
  }

  /** Moves a task that waits for an empty worker to one that is empty before its own. */
  #moveHandOvers(): void {
    for (const worker of this.#lanes.workers) {
      const task = this.#lanes.peek(worker);
      if (task === undefined || !this.needsEmptyWorker(task) || isNamed(task)) continue;
      const empty = this.#options.manager.workers.find(
        (each) => each.isOpen && each.inFlight === 0 && this.isNext(each),
      );
      if (empty !== undefined && this.#options.trySendTo(task, empty)) this.#lanes.remove(task);
    }
  }

  /** Sends the tasks that wait for `worker` alone. */
  #pumpLane(worker: TaskWorker): void {
    let task = this.#lanes.peek(worker);
    while (task !== undefined && this.#options.trySendTo(task, worker)) {
      this.#lanes.remove(task);
      task = this.#lanes.peek(worker);
    }
  }

  /**
   * Returns the worker whose lane a new task is for. While tasks wait for any worker, older ones of its key
   * may be among them.
   */
  laneOf(task: Task): TaskWorker | undefined {
    return this.isBound(task) && this.#options.isQueueEmpty() ? this.#workerOf(task) : undefined;
  }

  /** True: one worker alone may run it. */
  isBound(task: Task): boolean {
    return isNamed(task) || this.needsEmptyWorker(task);
  }

  /**
   * True: the task has a transfer list, which goes once. It must not be in a worker that a neighbour blocks
   * before it begins.
   */
  needsEmptyWorker({ options: { transfer } }: Task): boolean {
    return transfer.length > 0 && this.#options.concurrentTasks > 1;
  }

  /** The worker for a bound task; `undefined`: it does not exist. */
  #workerOf(task: Task): TaskWorker | undefined {
    const { key, workerId } = task.options;
    if (workerId !== undefined)
      return this.#options.manager.workers.find(({ id }) => id === workerId);
    if (key !== undefined) return this.#lanes.workerOf(key, () => this.#candidates());
    return this.#lanes.emptiest(this.#candidates());
  }

  #candidates(): readonly TaskWorker[] {
    const { manager } = this.#options;
    if (!manager.hasIdleWorker) manager.warm(this.#lanes.workers.length + 1);
    return manager.workers;
  }

  /** Sends a bound task of the queue, or puts it into a lane; false: it has no worker yet. */
  trySend(task: Task): boolean {
    const worker = this.#workerOf(task);
    if (worker === undefined) {
      if (task.options.workerId === undefined) return false;
      this.#options.refuse(task, workerGone(task.name));
      return true;
    }
    if (!this.isNext(worker) || !this.#options.trySendTo(task, worker))
      this.#lanes.wait(task, worker);
    return true;
  }

  /** Workers that are not reserved for an earlier task. */
  workersFor(task: Task): readonly TaskWorker[] {
    if (this.#lanes.length === 0) return this.#options.manager.workers;
    return this.#options.manager.workers.filter((worker) => !this.#lanes.isReserved(worker, task));
  }
}

/** True: its options name the worker that runs it. */
function isNamed({ options: { key, workerId } }: Task): boolean {
  return key !== undefined || workerId !== undefined;
}
