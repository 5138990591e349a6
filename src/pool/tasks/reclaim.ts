// Work ahead of a worker rests on an expected run time. When that is wrong, a task waits behind a long one
// while another worker is idle. The reclaimer checks for it: after a moment without an answer, waiting
// tasks are reclaimed from the stalled worker, or sent to the idle one after all.
// Not here: requeueing reclaimed tasks (dispatcher.ts), deciding a claim (worker/parent/worker.ts).

import { clearTimeout, setTimeout } from '../../lib/index.js';
import type { Task } from '../task.js';
import type { TaskWorker, WorkerManager } from '../workers/worker-manager.js';

/** Maximum time that a worker may hold work ahead while another is idle; in ms. */
export const reclaimAfterMs = 1;
/** Maximum pause between two checks of workers that work for other pools: they send no notice when done. */
const maxPauseMs = 8;

export interface ReclaimerOptions {
  readonly manager: WorkerManager;
  /** Tasks that run in a worker at a time. */
  readonly concurrentTasks: number;
  /** Tasks that wait for a worker. */
  readonly waitingTasks: () => number;
  /** Takes tasks that have not begun and that the worker no longer has. */
  readonly onReclaimed: (tasks: Task[], worker: TaskWorker) => void;
  /** Sends waiting tasks to any open worker, whatever is expected of the others. */
  readonly sendImpatiently: () => void;
}

export class Reclaimer {
  readonly #options: ReclaimerOptions;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: ReclaimerOptions) {
    this.#options = options;
  }

  /**
   * Schedules a check, if a worker is idle or may become idle without notice. For callers that may have
   * made a worker idle, or put work behind other work. Does nothing while a check is scheduled.
   */
  watch(): void {
    if (this.#timer === undefined) this.#checkIn(reclaimAfterMs);
  }

  #checkIn(pauseMs: number): void {
    const { manager } = this.#options;
    if (!manager.hasIdleWorker && !manager.isShared && manager.isComplete) return;
    const doneBefore = new Map(manager.workers.map((worker) => [worker, worker.tasksDone]));
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      const { hasWorkBehind } = this;
      if (hasWorkBehind && manager.isShared) {
        this.#reclaimTimed();
        manager.warm(1);
      }
      const { hasIdleWorker } = manager;
      if (hasIdleWorker) this.#reclaimStalled(doneBefore);
      else if (this.#stalled(doneBefore).length > 0) manager.warm(1); // what is behind goes there
      // Workers that work for others send no notice when they are done.
      const nextMs = hasIdleWorker ? reclaimAfterMs : Math.min(2 * pauseMs, maxPauseMs);
      if (hasWorkBehind && this.#timer === undefined) this.#checkIn(nextMs);
    }, pauseMs);
  }

  /** True: a task waits, in the queue or behind another in its worker. */
  get hasWorkBehind(): boolean {
    const { manager, concurrentTasks, waitingTasks } = this.#options;
    return (
      waitingTasks() > 0 ||
      manager.workers.some((worker) => worker.inFlight > concurrentTasks || worker.isBehindOthers)
    );
  }

  /** Returns tasks with a timeout to the queue, where their time does not run. */
  #reclaimTimed(): void {
    const { manager, onReclaimed } = this.#options;
    for (const worker of manager.workers) {
      if (!worker.isBusyElsewhere) continue;
      const timed = [...worker.calls()].filter(({ options }) => options.timeoutMs !== Infinity);
      onReclaimed(
        timed.filter((task) => worker.tryReclaim(task)),
        worker,
      );
    }
  }

  /**
   * Reclaims half of the waiting tasks, newest first, from each worker without an answer since
   * `doneBefore`.
   */
  #reclaimStalled(doneBefore: ReadonlyMap<TaskWorker, number>): void {
    const { onReclaimed, sendImpatiently } = this.#options;
    for (const worker of this.#stalled(doneBefore)) {
      const ahead = this.#tasksBehind(worker);
      const newest = [...worker.calls()].sort((a, b) => b.sequence - a.sequence);
      const reclaimed = newest
        .slice(0, Math.ceil(ahead / 2))
        .filter((task) => worker.tryReclaim(task));
      onReclaimed(reclaimed, worker);
    }
    sendImpatiently();
  }

  /** Workers in which tasks wait and that have answered nothing since `doneBefore`. */
  #stalled(doneBefore: ReadonlyMap<TaskWorker, number>): TaskWorker[] {
    return this.#options.manager.workers.filter(
      (worker) => this.#tasksBehind(worker) > 0 && worker.tasksDone === doneBefore.get(worker),
    );
  }

  #tasksBehind(worker: TaskWorker): number {
    const { concurrentTasks } = this.#options;
    return worker.inFlight - (worker.isBehindOthers ? 0 : concurrentTasks);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}
