// The last step of giving up a task: its grace time is over, it goes on, and its worker has to end. Its
// neighbours, tasks that run beside it, may finish while the event loop of the worker turns, up to a limit.
// The worker gets no new tasks; the worker manager may start another for it meanwhile. A loop that does not
// turn cannot finish the neighbours either. Tasks that had not begun were requeued before.

import { startAnswerTimer, startTimer } from '../../lib/index.js';
import type { Task } from '../task.js';
import type { TaskWorker } from './worker-manager.js';

/** Maximum time for a worker to prove that its event loop turns, in ms. */
const defaultAnswerMs = 1_000;

export interface LastStepOptions {
  readonly neighbourGraceMs: number;
  /** Called when the worker gets no more tasks and no longer counts as one of the pool's. */
  readonly onCondemned: (worker: TaskWorker) => void;
}

export class LastStep {
  readonly #options: LastStepOptions;
  readonly #answerMs: number;
  /** Workers that are to end, with the name of the blamed task. */
  readonly #condemned = new WeakMap<TaskWorker, string>();
  /** Condemned workers that were killed: others end by themselves before. */
  readonly #killed = new WeakSet<TaskWorker>();

  /** `answerMs`: as `defaultAnswerMs`. */
  constructor(options: LastStepOptions, answerMs = defaultAnswerMs) {
    this.#options = options;
    this.#answerMs = answerMs;
  }

  /**
   * Ends `worker`: `blamed` goes on after its grace time, or has not begun because the worker reads
   * nothing. `wasBehind`: it had neighbours when the grace time began.
   */
  begin(blamed: Task, worker: TaskWorker, hasBegun: boolean, wasBehind: boolean): void {
    const isBehind = hasNeighbours(worker);
    if (!hasBegun && (isBehind || wasBehind) && !worker.isLoading) {
      // A neighbour blocks the loop, which may end; after the last one the worker has time to answer.
      startAnswerTimer(this.#answerMs, () => {
        if (worker.has(blamed)) this.begin(blamed, worker, hasBegun, isBehind);
      })?.unref();
      return;
    }
    if (!this.#condemned.has(worker)) this.#condemned.set(worker, blamed.name || 'a task');
    if (!hasNeighbours(worker)) {
      this.#kill(worker);
      return;
    }
    this.#options.onCondemned(worker);
    let turns = false;
    void worker.requestMemory().then(() => {
      turns = true;
    });
    startAnswerTimer(this.#answerMs, () => {
      if (!turns) this.#kill(worker);
    })?.unref();
    startTimer(this.#options.neighbourGraceMs, () => this.#kill(worker))?.unref();
  }

  #kill(worker: TaskWorker): void {
    if (worker.state === 'ended') return;
    this.#killed.add(worker);
    worker.kill();
  }

  /** Kills the worker if it has answered the last neighbour. */
  answered(worker: TaskWorker): void {
    if (worker.abandoned.size === 0 || hasNeighbours(worker)) return;
    if (this.#condemned.has(worker)) this.#kill(worker);
  }

  /** Returns the name of the task for which `worker` was killed; `undefined`: it was not. */
  blameOf(worker: TaskWorker): string | undefined {
    return this.#killed.has(worker) ? this.#condemned.get(worker) : undefined;
  }
}

/** True: tasks run in it beside those that were given up. */
export function hasNeighbours(worker: Pick<TaskWorker, 'inFlight' | 'abandoned'>): boolean {
  return worker.inFlight > worker.abandoned.size;
}
