// Tasks that one worker alone may run: those of a key, those that each worker runs, and those that need a worker of
// their own to begin in. They wait in the lane of that worker (lanes.ts), beside the queue.
// Not here: the queue, and what sending a task is (dispatcher.ts).

import type { CodedError } from '../errors.js';
import { isThere, Lanes } from './lanes.js';
import { workerGone } from './refusals.js';
import type { Task } from './task.js';
import type { TaskWorker, WorkerManager } from './worker-manager.js';

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

  /** Tasks that wait. */
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

  /** Takes a task out, wherever it waits; false: it is not here. */
  remove(task: Task): boolean {
    return this.#lanes.remove(task);
  }

  /** Takes out all that waits. */
  takeAll(): Task[] {
    return this.#lanes.workers.flatMap((worker) => this.#lanes.leave(worker));
  }

  /** As `leave`, for each worker for which tasks wait. */
  leaveGone(): void {
    if (this.#lanes.length > 0) for (const worker of this.#lanes.workers) this.leave(worker);
  }

  /** What waits for a worker that takes no more goes to the front of the queue; of `runOnEach` it is refused. */
  leave(worker: TaskWorker): void {
    if (isThere(worker)) return;
    for (const task of this.#lanes.leave(worker).reverse()) {
      if (task.options.workerId === undefined) this.#options.requeue(task);
      else this.#options.refuse(task, workerGone(task.name));
    }
  }

  /** Sends what can be sent. */
  pump(): void {
    if (this.#lanes.length === 0) return;
    this.#moveHandOvers();
    for (const worker of this.#lanes.workers) this.#pumpLane(worker);
  }

  /** Sends what waits for an empty worker to one that is empty earlier than its own. */
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

  /** Sends what waits for `worker` alone. */
  #pumpLane(worker: TaskWorker): void {
    let task = this.#lanes.peek(worker);
    while (task !== undefined && this.#options.trySendTo(task, worker)) {
      this.#lanes.remove(task);
      task = this.#lanes.peek(worker);
    }
  }

  /** The worker whose lane a new task is for. Where tasks wait for any worker, older ones of its key may be among them. */
  laneOf(task: Task): TaskWorker | undefined {
    return this.isBound(task) && this.#options.isQueueEmpty() ? this.#workerOf(task) : undefined;
  }

  /** True: one worker alone may run it. */
  isBound(task: Task): boolean {
    return isNamed(task) || this.needsEmptyWorker(task);
  }

  /** What it hands over goes once: it must not be with a worker that a neighbour blocks before it begins. */
  needsEmptyWorker({ options: { transfer } }: Task): boolean {
    return transfer.length > 0 && this.#options.concurrentTasks > 1;
  }

  /** The one worker for a task that is bound to one; `undefined`: none is there. */
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

  /** Sends a bound task of the queue, or lets it wait in a lane; false: it has no worker yet. */
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

  /** Workers that are not reserved for a task that came before. */
  workersFor(task: Task): readonly TaskWorker[] {
    if (this.#lanes.length === 0) return this.#options.manager.workers;
    return this.#options.manager.workers.filter((worker) => !this.#lanes.isReserved(worker, task));
  }
}

/** True: its options say which worker runs it. */
function isNamed({ options: { key, workerId } }: Task): boolean {
  return key !== undefined || workerId !== undefined;
}
