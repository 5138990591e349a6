// Work ahead of a host rests on an expectation of how long its tasks run. When that fails, a task waits
// behind a long one though another host is idle. This watches for it: what has not moved within a
// moment is taken back from the host that sits on it, or goes to the idle host after all.
// Not here: what happens with what was taken back (dispatcher.ts), who wins a claim (host/host.ts).

import type { Fleet, TaskHost } from './fleet.js';
import type { Task } from './task.js';

/** How long a host may sit on work ahead while another is idle, before it is taken back; in ms. */
export const takeBackAfterMs = 1;

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
   * Looks again in a moment, if a host is idle: whoever may have made one idle, or put work behind
   * other work, calls this. Nothing happens while it looks already.
   */
  watch(): void {
    if (this.#timer !== undefined || !this.#options.fleet.hasIdleHost) return;
    const doneBefore = new Map(this.#options.fleet.hosts.map((host) => [host, host.tasksDone]));
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      if (this.#options.fleet.hasIdleHost) this.#takeBack(doneBefore);
      if (this.hasWorkBehind) this.watch();
    }, takeBackAfterMs);
  }

  /** Whether a task waits, in the queue or behind another in its host. */
  get hasWorkBehind(): boolean {
    const { fleet, concurrentTasks, waitingTasks } = this.#options;
    return waitingTasks() > 0 || fleet.hosts.some((host) => host.inFlight > concurrentTasks);
  }

  /** From each host that has answered nothing since: half of what waits there, the newest. */
  #takeBack(doneBefore: ReadonlyMap<TaskHost, number>): void {
    const { fleet, concurrentTasks, onTaken, sendImpatiently } = this.#options;
    for (const host of fleet.hosts) {
      const ahead = host.inFlight - concurrentTasks;
      if (ahead <= 0 || host.tasksDone !== doneBefore.get(host)) continue;
      const newest = [...host.calls()].sort((a, b) => b.sequence - a.sequence);
      const taken = newest.slice(0, Math.ceil(ahead / 2)).filter((task) => host.tryTakeBack(task));
      onTaken(taken, host);
    }
    sendImpatiently();
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}
