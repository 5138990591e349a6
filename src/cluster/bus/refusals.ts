// Reports of other nodes that keep sending what is refused: one for each of them and minute, instead of one
// for each message. A program without a subscriber gets a warning, because it cannot detect its own wrong
// secret or clock otherwise.

import { announcements } from '../../lib/index.js';

const reportAgainMs = 60_000;
/** Limit of remembered keys: anybody may invent new ones. */
const maxKeys = 256;
/** Limit of reports in a minute, for the same reason. */
const maxReports = 20;

export class Refusals {
  readonly #reportedAt = new Map<string, number>();
  #minuteFrom = 0;
  #inMinute = 0;

  /** Announces `why`, unless `key` was reported within the last minute. */
  report(key: string, why: string): void {
    const now = Date.now();
    const before = this.#reportedAt.get(key);
    if (before !== undefined && Math.abs(now - before) < reportAgainMs) return;
    this.#reportedAt.delete(key); // moves it to the end: the oldest is forgotten first
    const [oldest] = this.#reportedAt.size < maxKeys ? [] : this.#reportedAt.keys();
    if (oldest !== undefined) this.#reportedAt.delete(oldest);
    this.#reportedAt.set(key, now);
    if (Math.abs(now - this.#minuteFrom) >= reportAgainMs) {
      this.#minuteFrom = now;
      this.#inMinute = 0;
    }
    this.#inMinute += 1;
    if (this.#inMinute > maxReports) return;
    announce(this.#inMinute < maxReports ? why : `${why}; others are not reported for a minute`);
  }
}

function announce(why: string): void {
  const { clusterRefused } = announcements;
  if (clusterRefused.hasSubscribers) clusterRefused.publish({ why });
  else process.emitWarning(why, { code: 'CLUSTER_REFUSED' });
}
