// Reports processes that have no descriptor left for connections: once when that begins, once when it is over.
// The connections wait in the kernel's queue meanwhile. While one waits, the threads that accept try about twenty
// times a second and count each try in vain, in the scoreboard; the routers of this process have a count of their
// own. Not here: without the native core libuv closes such connections itself, and reports nothing.

import { announcements } from '../../lib/index.js';
import { descriptorLimitOf } from '../../proc/index.js';
import { boardAt } from '../shared/board.js';
import type { SupervisorSystem } from './system.js';

/** Time without a try in vain after which the shortage is over; a shorter pause is the same one. In ms. */
const quietMs = 3000;

/** The part of a server's process that is used here. */
export interface CountedProcess {
  readonly number: number;
  readonly pid: number | undefined;
}

type Counts = Pick<SupervisorSystem, 'rows' | 'routersExhausted'>;

/** Descriptors of one process. */
class Supply {
  readonly #pid: number | undefined;
  /** Read at the start for this process: reading needs a descriptor. */
  readonly #limit: number | undefined;
  #count = 0;
  #lastAtMs = 0;
  #sinceMs: number | undefined;

  constructor(pid: number | undefined, limit?: number) {
    this.#pid = pid;
    this.#limit = limit;
  }

  /** `count`: tries in vain so far; fewer than before: some were cleared. */
  note(count: number, nowMs: number): void {
    const hasFailed = count > this.#count;
    this.#count = count;
    if (hasFailed) {
      this.#lastAtMs = nowMs;
      if (this.#sinceMs === undefined) this.#begin(nowMs);
    } else if (this.#sinceMs !== undefined && nowMs - this.#lastAtMs >= quietMs) {
      announcements.serverRecovered.publish({
        pid: this.#pid,
        exhaustedMs: Math.round(this.#lastAtMs - this.#sinceMs),
      });
      this.#sinceMs = undefined;
    }
  }

  #begin(nowMs: number): void {
    this.#sinceMs = nowMs;
    const limit = this.#limit ?? descriptorLimitOf(this.#pid);
    announcements.serverExhausted.publish({ pid: this.#pid, limit });
  }
}

/** All supervisors of this process share its descriptors. */
let ownSupply: Supply | undefined;

export class Descriptors<Process extends CountedProcess> {
  readonly #counts: Counts;
  readonly #own: Supply;
  readonly #supplies = new WeakMap<Process, Supply>();

  constructor(counts: Counts) {
    this.#counts = counts;
    ownSupply ??= new Supply(process.pid, descriptorLimitOf(process.pid));
    this.#own = ownSupply;
  }

  /** Once a second; `nowMs`: monotonic. */
  check(processes: readonly (Process | undefined)[], nowMs: number): void {
    this.#own.note(this.#counts.routersExhausted(), nowMs);
    for (const each of processes) {
      if (each === undefined) continue;
      const rows = this.#counts.rows[each.number] ?? [];
      const count = rows.reduce((sum, row) => sum + row.get(boardAt.exhausted), 0);
      this.#supplyOf(each).note(count, nowMs);
    }
  }

  #supplyOf(process: Process): Supply {
    const known = this.#supplies.get(process);
    if (known !== undefined) return known;
    const supply = new Supply(process.pid);
    this.#supplies.set(process, supply);
    return supply;
  }
}
