// Work ahead of a host rests on an expectation of how long its tasks run. When that fails, a task waits
// behind a long one though another host is idle. This watches for it: what has not moved within a
// moment is taken back from the host that sits on it, or goes to the idle host after all.
// Not here: what happens with what was taken back (dispatcher.ts), who wins a claim (host/host.ts).

import { clearTimeout, setTimeout } from '../internal/index.js';
import type { Fleet, TaskHost } from './fleet.js';
import type { Task } from './task.js';

/** How long a host may sit on work ahead while another is idle, before it is taken back; in ms. */
export const takeBackAfterMs = 1;
/** At most between two looks at hosts that work for other pools, which do not say when they are done. */
const longestPauseMs = 8;

export interface TakeBackOptions {
  readonly fleet: Fleet;
  /** Tasks that run in a host at a time. */
  readonly concurrentTasks: number;
  /** Tasks that wait for a host. */
  readonly waitingTasks: () => number;
  /** These have not begun, and the host has them no more. */
  readonly onTaken: (tasks: Task[], host: TaskHost) => void;
  /** What waits should go to any host that is open, whatever is expected of the others. */
  readonly sendImpatiently: () => void;
}

export class TakeBack {
  readonly #options: TakeBackOptions;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: TakeBackOptions) {
    this.#options = options;
  }

  /**
   * Looks again in a moment, if a host is idle or may become so unheard: whoever may have made one idle,
   * or put work behind other work, calls this. Nothing happens while it looks already.
   */
  watch(): void {
    if (this.#timer === undefined) this.#lookIn(takeBackAfterMs);
  }

  #lookIn(pauseMs: number): void {
    const { fleet } = this.#options;
    if (!fleet.hasIdleHost && !fleet.isShared && fleet.isComplete) return;
    const doneBefore = new Map(fleet.hosts.map((host) => [host, host.tasksDone]));
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      const { hasWorkBehind } = this;
      if (hasWorkBehind && fleet.isShared) {
        this.#takeBackTimed();
        fleet.warm(1);
      }
      const { hasIdleHost } = fleet;
      if (hasIdleHost) this.#takeBack(doneBefore);
      else if (this.#stalled(doneBefore).length > 0) fleet.warm(1); // what is behind goes there
      // Hosts that work for others do not say when they are done.
      const nextMs = hasIdleHost ? takeBackAfterMs : Math.min(2 * pauseMs, longestPauseMs);
      if (hasWorkBehind && this.#timer === undefined) this.#lookIn(nextMs);
    }, pauseMs);
  }

  /** Whether a task waits, in the queue or behind another in its host. */
  get hasWorkBehind(): boolean {
    const { fleet, concurrentTasks, waitingTasks } = this.#options;
    return (
      waitingTasks() > 0 ||
      fleet.hosts.some((host) => host.inFlight > concurrentTasks || host.isBehindOthers)
    );
  }

  /** What has a timeout waits in the queue, where its time does not run. */
  #takeBackTimed(): void {
    const { fleet, onTaken } = this.#options;
    for (const host of fleet.hosts) {
      if (!host.isBusyElsewhere) continue;
      const timed = [...host.calls()].filter(({ options }) => options.timeoutMs !== Infinity);
      onTaken(
        timed.filter((task) => host.tryTakeBack(task)),
        host,
      );
    }
  }

  /** From each host that has answered nothing since: half of what waits there, the newest. */
  #takeBack(doneBefore: ReadonlyMap<TaskHost, number>): void {
    const { onTaken, sendImpatiently } = this.#options;
    for (const host of this.#stalled(doneBefore)) {
      const ahead = this.#tasksBehind(host);
      const newest = [...host.calls()].sort((a, b) => b.sequence - a.sequence);
      const taken = newest.slice(0, Math.ceil(ahead / 2)).filter((task) => host.tryTakeBack(task));
      onTaken(taken, host);
    }
    sendImpatiently();
  }

  /** Hosts in which tasks wait and that have answered nothing since. */
  #stalled(doneBefore: ReadonlyMap<TaskHost, number>): TaskHost[] {
    return this.#options.fleet.hosts.filter(
      (host) => this.#tasksBehind(host) > 0 && host.tasksDone === doneBefore.get(host),
    );
  }

  #tasksBehind(host: TaskHost): number {
    const { concurrentTasks } = this.#options;
    return host.inFlight - (host.isBehindOthers ? 0 : concurrentTasks);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}
