// The last step of giving a task up: its grace time is over, it goes on, and its worker has to end. Tasks
// that run beside it are innocent. As long as the worker's event loop turns they may finish, up to a limit,
// and the worker gets nothing new; the worker manager may start another for it meanwhile. A loop that does not turn
// is of no use to them either. What has not begun went elsewhere before.

import { startTimer } from '../internal/index.js';
import type { Task } from './task.js';
import type { TaskWorker } from './worker-manager.js';

/** How long a worker may take to say that its event loop turns, in ms. */
const answerMs = 1_000;

export interface LastStepOptions {
  readonly neighbourGraceMs: number;
  /** The worker gets nothing more, and does not count as one of the pool's. */
  readonly onCondemned: (worker: TaskWorker) => void;
}

export class LastStep {
  readonly #options: LastStepOptions;
  /** Workers that are to end, each with the name of the task that is why. */
  readonly #condemned = new WeakMap<TaskWorker, string>();

  constructor(options: LastStepOptions) {
    this.#options = options;
  }

  /** `blamed` goes on in `worker` after its grace time, or has not begun because the worker reads nothing. */
  begin(blamed: Task, worker: TaskWorker, hasBegun: boolean): void {
    if (!hasBegun && hasNeighbours(worker) && !worker.isLoading) {
      // One of them blocks the loop, which may end.
      startTimer(answerMs, () => {
        if (worker.has(blamed)) this.begin(blamed, worker, hasBegun);
      })?.unref();
      return;
    }
    if (!this.#condemned.has(worker)) this.#condemned.set(worker, blamed.name || 'a task');
    if (!hasNeighbours(worker)) {
      worker.kill();
      return;
    }
    this.#options.onCondemned(worker);
    let turns = false;
    void worker.requestMemory().then(() => {
      turns = true;
    });
    const kill = (): void => {
      if (worker.state !== 'ended') worker.kill();
    };
    startTimer(answerMs, () => {
      if (!turns) kill();
    })?.unref();
    startTimer(this.#options.neighbourGraceMs, kill)?.unref();
  }

  /** `worker` has answered a task: nobody may be left to wait for. */
  answered(worker: TaskWorker): void {
    if (worker.abandoned.size === 0 || hasNeighbours(worker)) return;
    if (this.#condemned.has(worker)) worker.kill();
  }

  /** Whose fault the end of `worker` was, `undefined`: not that of a task beside others. */
  blameOf(worker: TaskWorker): string | undefined {
    return this.#condemned.get(worker);
  }
}

function hasNeighbours(worker: TaskWorker): boolean {
  return worker.inFlight > worker.abandoned.size;
}
