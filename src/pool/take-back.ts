// Work ahead of a worker rests on an expectation of how long its tasks run. When that fails, a task waits
// behind a long one though another worker is idle. This watches for it: what has not moved within a
// moment is taken back from the worker that sits on it, or goes to the idle worker after all.
// Not here: what happens with what was taken back (dispatcher.ts), who wins a claim (worker/worker.ts).

import { clearTimeout, setTimeout } from '../internal/index.js';
import type { Task } from './task.js';
import type { TaskWorker, WorkerManager } from './worker-manager.js';

/** How long a worker may sit on work ahead while another is idle, before it is taken back; in ms. */
export const takeBackAfterMs = 1;
/** At most between two looks at workers that work for other pools, which do not say when they are done. */
const longestPauseMs = 8;

export interface TakeBackOptions {
  readonly manager: WorkerManager;
  /** Tasks that run in a worker at a time. */
  readonly concurrentTasks: number;
  /** Tasks that wait for a worker. */
  readonly waitingTasks: () => number;
  /** These have not begun, and the worker has them no more. */
  readonly onTaken: (tasks: Task[], worker: TaskWorker) => void;
  /** What waits should go to any worker that is open, whatever is expected of the others. */
  readonly sendImpatiently: () => void;
}

export class TakeBack {
  readonly #options: TakeBackOptions;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: TakeBackOptions) {
    this.#options = options;
  }

  /**
   * Looks again in a moment, if a worker is idle or may become so unheard: whoever may have made one idle,
   * or put work behind other work, calls this. Nothing happens while it looks already.
   */
  watch(): void {
    if (this.#timer === undefined) this.#lookIn(takeBackAfterMs);
  }

  #lookIn(pauseMs: number): void {
    const { manager } = this.#options;
    if (!manager.hasIdleWorker && !manager.isShared && manager.isComplete) return;
    const doneBefore = new Map(manager.workers.map((worker) => [worker, worker.tasksDone]));
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      const { hasWorkBehind } = this;
      if (hasWorkBehind && manager.isShared) {
        this.#takeBackTimed();
        manager.warm(1);
      }
      const { hasIdleWorker } = manager;
      if (hasIdleWorker) this.#takeBack(doneBefore);
      else if (this.#stalled(doneBefore).length > 0) manager.warm(1); // what is behind goes there
      // Workers that work for others do not say when they are done.
      const nextMs = hasIdleWorker ? takeBackAfterMs : Math.min(2 * pauseMs, longestPauseMs);
      if (hasWorkBehind && this.#timer === undefined) this.#lookIn(nextMs);
    }, pauseMs);
  }

  /** Whether a task waits, in the queue or behind another in its worker. */
  get hasWorkBehind(): boolean {
    const { manager, concurrentTasks, waitingTasks } = this.#options;
    return (
      waitingTasks() > 0 ||
      manager.workers.some((worker) => worker.inFlight > concurrentTasks || worker.isBehindOthers)
    );
  }

  /** What has a timeout waits in the queue, where its time does not run. */
  #takeBackTimed(): void {
    const { manager, onTaken } = this.#options;
    for (const worker of manager.workers) {
      if (!worker.isBusyElsewhere) continue;
      const timed = [...worker.calls()].filter(({ options }) => options.timeoutMs !== Infinity);
      onTaken(
        timed.filter((task) => worker.tryTakeBack(task)),
        worker,
      );
    }
  }

  /** From each worker that has answered nothing since: half of what waits there, the newest. */
  #takeBack(doneBefore: ReadonlyMap<TaskWorker, number>): void {
    const { onTaken, sendImpatiently } = this.#options;
    for (const worker of this.#stalled(doneBefore)) {
      const ahead = this.#tasksBehind(worker);
      const newest = [...worker.calls()].sort((a, b) => b.sequence - a.sequence);
      const taken = newest
        .slice(0, Math.ceil(ahead / 2))
        .filter((task) => worker.tryTakeBack(task));
      onTaken(taken, worker);
    }
    sendImpatiently();
  }

  /** Workers in which tasks wait and that have answered nothing since. */
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
