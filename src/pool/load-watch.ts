// Ends hosts in which modules load for ever though no call needs them any more: what a call brought along
// stays in the ring of a host from which the call was taken back, and is loaded there all the same.
// Not here: loads for a call that was given up, which is the ladder's (dispatcher.ts, last-step.ts).

import { startTimer } from '../internal/index.js';
import type { TaskHost } from './fleet.js';

/** At least between two looks, in ms. */
const shortestPauseMs = 100;

export class LoadWatch {
  readonly #pauseMs: number;
  readonly #watched = new WeakSet<TaskHost>();

  /** `graceMs`: how long such a load may last. */
  constructor(graceMs: number) {
    this.#pauseMs = Math.max(graceMs, shortestPauseMs);
  }

  /** A call was taken back from `host`. Nothing happens while it is watched already. */
  watch(host: TaskHost): void {
    if (this.#watched.has(host) || host.isShared) return;
    this.#watched.add(host);
    this.#lookLater(host, undefined);
  }

  /** `before`: what it loaded for nobody at the last look. */
  #lookLater(host: TaskHost, before: number | undefined): void {
    startTimer(this.#pauseMs, () => {
      if (host.state !== 'starting' && host.state !== 'ready') return;
      const { orphanLoad } = host;
      if (orphanLoad !== undefined && orphanLoad === before) {
        host.kill();
        return;
      }
      // One with nothing in flight has read what was taken back: an idle pool has no timers.
      const isBusy = host.inFlight > 0 || host.state === 'starting';
      if (orphanLoad !== undefined || (host.hasTakenBack && isBusy))
        this.#lookLater(host, orphanLoad);
      else this.#watched.delete(host);
    })?.unref();
  }
}
