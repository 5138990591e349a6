// Ends workers in which modules load for ever that no call needs any more. Definitions of a reclaimed call
// stay in the ring of its worker and are loaded all the same.
// Not here: loads for a call that was given up, which is the ladder's (dispatcher.ts, last-step.ts).

import { startTimer } from '../../lib/index.js';
import type { TaskWorker } from './worker-manager.js';

/** Minimum time between two checks, in ms. */
const minPauseMs = 100;

export class LoadWatch {
  readonly #pauseMs: number;
  readonly #watched = new WeakSet<TaskWorker>();

  /** `graceMs`: maximum duration of such a load. */
  constructor(graceMs: number) {
    this.#pauseMs = Math.max(graceMs, minPauseMs);
  }

  /** Watches `worker` after a call was reclaimed from it. Does nothing while it is watched already. */
  watch(worker: TaskWorker): void {
    if (this.#watched.has(worker) || worker.isShared) return;
    this.#watched.add(worker);
    this.#checkLater(worker, undefined);
  }

  /** `before`: the load without a call at the last check. */
  #checkLater(worker: TaskWorker, before: number | undefined): void {
    startTimer(this.#pauseMs, () => {
      if (worker.state !== 'starting' && worker.state !== 'ready') return;
      const { orphanLoad } = worker;
      if (orphanLoad !== undefined && orphanLoad === before) {
        worker.kill();
        return;
      }
      // A worker with nothing in flight has read the frames of reclaimed calls: an idle pool has no timers.
      const isBusy = worker.inFlight > 0 || worker.state === 'starting';
      if (orphanLoad !== undefined || (worker.hasReclaimed && isBusy))
        this.#checkLater(worker, orphanLoad);
      else this.#watched.delete(worker);
    })?.unref();
  }
}
