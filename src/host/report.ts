// What a running task says to its caller before it has a result: progress, partial results, questions of
// a log. The caller's half is the call option `onReport`; an inline call has no host in between.

import { AsyncLocalStorage } from 'node:async_hooks';
import { runningTask } from './current-task.js';
import { hostOfOtherCopy } from './inside.js';

export type ReportListener = (value: unknown) => unknown;

const inlineListeners = new AsyncLocalStorage<ReportListener | undefined>();

/** Runs an inline call whose reports go to `listener`, or to nobody. */
export function withReports<T>(listener: ReportListener | undefined, work: () => T): T {
  // A call of its own store costs more than a short call: only where there is one to set or to hide.
  if (listener === undefined && inlineListeners.getStore() === undefined) return work();
  return inlineListeners.run(listener, work);
}

/**
 * Sends `value` to the caller of the running task, whose option `onReport` gets it, in order. Resolves when the
 * caller has taken it: when `onReport` has returned, and what it returned is settled. A task that awaits it is
 * never ahead of its caller. Does nothing where nobody listens, outside of a task and after its answer. Rejects
 * with `TRANSFER_…` when `value` cannot travel, inline with what `onReport` throws.
 */
export async function report(value: unknown): Promise<void> {
  const task = runningTask();
  if (task !== undefined) {
    if (!task.isOver) await task.reporter(task, value);
    return;
  }
  const listener = inlineListeners.getStore();
  if (listener !== undefined) await listener(value);
  else await hostOfOtherCopy()?.report(value);
}
