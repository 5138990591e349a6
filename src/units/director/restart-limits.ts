// Restart limits of an instance whose thread has ended: with growing delays, and not endlessly.

import { announcements, RestartPolicy } from '../../lib/index.js';
import type { Placed } from './deployment.js';

/** An instance that has run for so long has started well, in ms. */
const wellMs = 10_000;

export class RestartLimits {
  readonly #rows = new WeakMap<Placed, { readonly policy: RestartPolicy; atMs: number }>();

  /** Announces the loss; returns the delay in ms before the restart, `undefined`: no restart. */
  note(placed: Placed, why: string): number | undefined {
    const row = this.#rows.get(placed) ?? { policy: new RestartPolicy(), atMs: 0 };
    this.#rows.set(placed, row);
    const nowMs = performance.now();
    if (nowMs - row.atMs > wellMs) row.policy.succeeded();
    row.atMs = nowMs;
    const delayMs = row.policy.failed();
    announcements.unitLost.publish({ why, next: delayMs === undefined ? 'never' : 'again' });
    return delayMs;
  }
}
