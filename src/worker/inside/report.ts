// Reports of a running task to its caller before it has a result: progress, partial results, log lines. The
// caller's half is the call option `onReport`; an inline call has no worker in between.

import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks';
import { runningTask } from './current-task.js';
import { workerOfOtherCopy } from './inside.js';

export type ReportListener = (value: unknown) => unknown;

/** The reports of one inline call. */
export class InlineReports {
  readonly #listener: ReportListener | undefined;
  #isOver = false;

  /** `listener` may be `undefined`: reports are dropped. */
  constructor(listener: ReportListener | undefined) {
    this.#listener = listener && inCallersContext(listener);
  }

  /** Runs a part of the call: its reports, now or later, are for its own listener. */
  run<T>(work: () => T): T {
    // A store for each call costs more than a short call: only if there is a listener to set or to hide.
    return this.#listener === undefined && !isReported() ? work() : current.run(this, work);
  }

  /** Ends the reports: the call was answered. */
  end(): void {
    this.#isOver = true;
  }

  async take(value: unknown): Promise<void> {
    if (!this.#isOver) await this.#listener?.(value);
  }
}

const current = new AsyncLocalStorage<InlineReports>();

/** True: a report of the caller has a listener. */
function isReported(): boolean {
  return (
    current.getStore() !== undefined ||
    runningTask() !== undefined ||
    workerOfOtherCopy() !== undefined
  );
}

/**
 * Returns `listener` bound to its caller's context: its own reports are for the listener around the call.
 */
export function inCallersContext(listener: ReportListener): ReportListener {
  return AsyncResource.bind((value: unknown) => listener(value));
}

/**
 * Sends `value` to the caller of the running task, whose option `onReport` gets it, in order. Resolves when
 * the caller has taken it: when `onReport` has returned, and its result is settled. A task that awaits it
 * is never ahead of its caller. Does nothing without a listener, outside of a task and after its answer.
 * Rejects with `TRANSFER_…` when `value` cannot travel, inline with what `onReport` throws.
 */
export async function report(value: unknown): Promise<void> {
  // A call that runs inside a task is nearer than the task.
  const inline = current.getStore();
  if (inline !== undefined) return inline.take(value);
  const task = runningTask();
  if (task === undefined) await workerOfOtherCopy()?.report(value);
  else if (!task.isOver) await task.reporter(task, value);
}

/** In a partition: sends `value` as `report`, and resolves with what the caller's `onReport` returns. */
export async function ask(value: unknown): Promise<unknown> {
  const task = runningTask();
  return task === undefined || task.isOver ? undefined : await task.reporter(task, value);
}
