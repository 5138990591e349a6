// Ends workers in which modules load for ever though no call needs them any more: what a call brought along
// stays in the ring of a worker from which the call was reclaimed, and is loaded there all the same.
// Not here: loads for a call that was given up, which is the ladder's (dispatcher.ts, last-step.ts).

import { startTimer } from '../internal/index.js';
import type { TaskWorker } from './worker-manager.js';

/** At least between two looks, in ms. */
const minPauseMs = 100;

export class LoadWatch {
  readonly #pauseMs: number;
  readonly #watched = new WeakSet<TaskWorker>();

  /** `graceMs`: how long such a load may last. */
  constructor(graceMs: number) {
    this.#pauseMs = Math.max(graceMs, minPauseMs);
  }

  /** A call was reclaimed from `worker`. Nothing happens while it is watched already. */
  watch(worker: TaskWorker): void {
    if (this.#watched.has(worker) || worker.isShared) return;
    this.#watched.add(worker);
    this.#checkLater(worker, undefined);
  }

  /** `before`: what it loaded for nobody at the last look. */
  #checkLater(worker: TaskWorker, before: number | undefined): void {
    startTimer(this.#pauseMs, () => {
      if (worker.state !== 'starting' && worker.state !== 'ready') return;
      const { orphanLoad } = worker;
      if (orphanLoad !== undefined && orphanLoad === before) {
        worker.kill();
        return;
      }
      // One with nothing in flight has read what was reclaimed: an idle pool has no timers.
      const isBusy = worker.inFlight > 0 || worker.state === 'starting';
      if (orphanLoad !== undefined || (worker.hasReclaimed && isBusy))
        this.#checkLater(worker, orphanLoad);
      else this.#watched.delete(worker);
    })?.unref();
  }
}
