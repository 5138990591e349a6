// What a running task says to its caller before it has a result: progress, partial results, questions of
// a log. The caller's half is the call option `onReport`; an inline call has no worker in between.

import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks';
import { runningTask } from './current-task.js';
import { workerOfOtherCopy } from './inside.js';

export type ReportListener = (value: unknown) => unknown;

/** The reports of one inline call. */
export class InlineReports {
  readonly #listener: ReportListener | undefined;
  #isOver = false;

  /** `listener` may be `undefined`: nobody. */
  constructor(listener: ReportListener | undefined) {
    this.#listener = listener && inCallersContext(listener);
  }

  /** Runs a part of the call: what it reports, now or later, is for its own listener. */
  run<T>(work: () => T): T {
    // A call of its own store costs more than a short call: only where there is a listener to set or to hide.
    return this.#listener === undefined && !isReported() ? work() : current.run(this, work);
  }

  /** The call was answered. */
  end(): void {
    this.#isOver = true;
  }

  async take(value: unknown): Promise<void> {
    if (!this.#isOver) await this.#listener?.(value);
  }
}

const current = new AsyncLocalStorage<InlineReports>();

/** True: a report of who calls this has a way to go. */
function isReported(): boolean {
  return (
    current.getStore() !== undefined ||
    runningTask() !== undefined ||
    workerOfOtherCopy() !== undefined
  );
}

/** `listener` as if the caller of this called it: what it reports itself is for the listener around the call. */
export function inCallersContext(listener: ReportListener): ReportListener {
  return AsyncResource.bind((value: unknown) => listener(value));
}

/**
 * Sends `value` to the caller of the running task, whose option `onReport` gets it, in order. Resolves when the
 * caller has taken it: when `onReport` has returned, and what it returned is settled. A task that awaits it is
 * never ahead of its caller. Does nothing where nobody listens, outside of a task and after its answer. Rejects
 * with `TRANSFER_…` when `value` cannot travel, inline with what `onReport` throws.
 */
export async function report(value: unknown): Promise<void> {
  // A call that runs inside a task is nearer than the task.
  const inline = current.getStore();
  if (inline !== undefined) return inline.take(value);
  const task = runningTask();
  if (task === undefined) await workerOfOtherCopy()?.report(value);
  else if (!task.isOver) await task.reporter(task, value);
}
