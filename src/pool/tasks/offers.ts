// Offers: while no worker is ready, the first tasks of the queue also lie in threads that start, which begin
// them when they are ready, even while this thread is blocked. An offered task still waits in the queue and
// holds no core. The first worker that is ready begins its offers, and all others are withdrawn, so no
// earlier task stays behind in a thread that starts slowly.
// Not here: the steps of a task (dispatcher.ts), which thread takes one more (worker-manager.ts).

import type { TaskQueue } from '../queue.js';
import type { Task } from '../task.js';
import type { LoadWatch } from '../workers/load-watch.js';
import type { TaskWorker, WorkerManager } from '../workers/worker-manager.js';

export interface OffersOptions {
  readonly manager: WorkerManager;
  readonly queue: TaskQueue<Task>;
  readonly loadWatch: LoadWatch;
  /** Called when a worker begins an offered task; `isFirst`: it has begun no other. */
  readonly onBegun: (task: Task, worker: TaskWorker, isFirst: boolean) => void;
}

export class Offers {
  readonly #options: OffersOptions;
  readonly #workerOf = new Map<Task, TaskWorker>();

  constructor(options: OffersOptions) {
    this.#options = options;
  }

  has(task: Task): boolean {
    return this.#workerOf.has(task);
  }

  /**
   * Offers the task that was queued last. Only if the queue is offered as a whole: no task gets ahead of an
   * earlier one.
   */
  make(task: Task): void {
    const { manager, queue } = this.#options;
    if (this.#isBefore(task)) this.end(undefined);
    if (this.#workerOf.size !== queue.length - 1 || !isOfferable(task)) return;
    const worker = manager.offerable;
    if (worker?.trySend(task) === 'sent') this.#workerOf.set(task, worker);
  }

  /** True: the task has a higher priority than an offered one. */
  #isBefore({ options: { priority } }: Task): boolean {
    for (const { options } of this.#workerOf.keys()) if (options.priority < priority) return true;
    return false;
  }

  /** `ready` begins the tasks offered to it; offers to other workers are withdrawn. */
  end(ready: TaskWorker | undefined): void {
    for (const [task, worker] of [...this.#workerOf]) {
      if (worker === ready) this.#begun(task, worker);
      else this.withdraw(task);
    }
  }

  /**
   * Returns true when no worker has the task. A worker whose readiness was not read yet may have begun it.
   */
  withdraw(task: Task): boolean {
    const worker = this.#workerOf.get(task);
    if (worker === undefined) return true;
    if (!worker.tryReclaim(task)) {
      this.#begun(task, worker);
      return false;
    }
    this.#workerOf.delete(task);
    this.#options.loadWatch.watch(worker);
    return true;
  }

  #begun(task: Task, worker: TaskWorker): void {
    this.#workerOf.delete(task);
    const others = [...this.#workerOf.values()].filter((each) => each === worker).length;
    this.#options.onBegun(task, worker, worker.inFlight - others === 1);
  }

  /** Forgets the offer of a task whose worker has ended; false: it was none. */
  forget(task: Task): boolean {
    return this.#workerOf.delete(task);
  }
}

/** True: the task may be offered. Tasks with a time limit wait where the limit can be kept. */
function isOfferable({ isChunk, options }: Task): boolean {
  const { timeoutMs, maxQueueMs, transfer } = options;
  return !isChunk && timeoutMs === Infinity && maxQueueMs === Infinity && transfer.length === 0;
}
