// The last step of giving a task up: its grace time is over, it goes on, and its host has to end. Tasks
// that run beside it are innocent. As long as the host's event loop turns they may finish, up to a limit,
// and the host gets nothing new; the fleet may start another for it meanwhile. A loop that does not turn
// is of no use to them either. What has not begun went elsewhere before.

import { startTimer } from '../internal/index.js';
import type { TaskHost } from './fleet.js';
import type { Task } from './task.js';

/** How long a host may take to say that its event loop turns, in ms. */
const answerMs = 1_000;

export interface LastStepOptions {
  readonly neighbourGraceMs: number;
  /** The host gets nothing more, and does not count as one of the pool's. */
  readonly onCondemned: (host: TaskHost) => void;
}

export class LastStep {
  readonly #options: LastStepOptions;
  /** Hosts that are to end, each with the name of the task that is why. */
  readonly #condemned = new WeakMap<TaskHost, string>();

  constructor(options: LastStepOptions) {
    this.#options = options;
  }

  /** `culprit` goes on in `host` after its grace time, or has not begun because the host reads nothing. */
  begin(culprit: Task, host: TaskHost, hasBegun: boolean): void {
    if (!hasBegun && hasInnocents(host) && !host.isLoading) {
      // One of them blocks the loop, which may end.
      startTimer(answerMs, () => {
        if (host.has(culprit)) this.begin(culprit, host, hasBegun);
      })?.unref();
      return;
    }
    if (!this.#condemned.has(host)) this.#condemned.set(host, culprit.name || 'a task');
    if (!hasInnocents(host)) {
      host.kill();
      return;
    }
    this.#options.onCondemned(host);
    let turns = false;
    void host.askMemory().then(() => {
      turns = true;
    });
    const kill = (): void => {
      if (host.state !== 'ended') host.kill();
    };
    startTimer(answerMs, () => {
      if (!turns) kill();
    })?.unref();
    startTimer(this.#options.neighbourGraceMs, kill)?.unref();
  }

  /** `host` has answered a task: nobody may be left to wait for. */
  answered(host: TaskHost): void {
    if (host.abandoned.size === 0 || hasInnocents(host)) return;
    if (this.#condemned.has(host)) host.kill();
  }

  /** Whose fault the end of `host` was, `undefined`: not that of a task beside others. */
  culpritOf(host: TaskHost): string | undefined {
    return this.#condemned.get(host);
  }
}

function hasInnocents(host: TaskHost): boolean {
  return host.inFlight > host.abandoned.size;
}
