// Work ahead of a worker rests on an expectation of how long its tasks run. When that fails, a task waits
// behind a long one though another worker is idle. This watches for it: what has not moved within a
// moment is reclaimed from the worker that sits on it, or goes to the idle worker after all.
// Not here: what happens with what was reclaimed (dispatcher.ts), who wins a claim (worker/worker.ts).

import { clearTimeout, setTimeout } from '../internal/index.js';
import type { Task } from './task.js';
import type { TaskWorker, WorkerManager } from './worker-manager.js';

/** How long a worker may sit on work ahead while another is idle, before it is reclaimed; in ms. */
export const reclaimAfterMs = 1;
/** At most between two looks at workers that work for other pools, which do not say when they are done. */
const maxPauseMs = 8;

export interface ReclaimerOptions {
  readonly manager: WorkerManager;
  /** Tasks that run in a worker at a time. */
  readonly concurrentTasks: number;
  /** Tasks that wait for a worker. */
  readonly waitingTasks: () => number;
  /** These have not begun, and the worker has them no more. */
  readonly onReclaimed: (tasks: Task[], worker: TaskWorker) => void;
  /** What waits should go to any worker that is open, whatever is expected of the others. */
  readonly sendImpatiently: () => void;
}

export class Reclaimer {
  readonly #options: ReclaimerOptions;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: ReclaimerOptions) {
    this.#options = options;
  }

  /**
   * Looks again in a moment, if a worker is idle or may become so unheard: whoever may have made one idle,
   * or put work behind other work, calls this. Nothing happens while it looks already.
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
      // Workers that work for others do not say when they are done.
      const nextMs = hasIdleWorker ? reclaimAfterMs : Math.min(2 * pauseMs, maxPauseMs);
      if (hasWorkBehind && this.#timer === undefined) this.#checkIn(nextMs);
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

  /** From each worker that has answered nothing since: half of what waits there, the newest. */
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
