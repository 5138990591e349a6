// Waits for another thread or process, each with a limit: a wait ends at its deadline or when its signal is
// aborted, and leaves no timer and no listener behind.
// Not here: stopping the work itself (a kill, a close), which is up to the caller.

import { CodedError } from '../errors.js';
import { unwatchAbort, watchAbort } from './abort-watch.js';
import { messageOf } from './message.js';
import { clearTimeout, setImmediate, setTimeout } from './node/timers.js';

/** The longest delay that a timer of Node takes (25 days); a longer one would fire at once. */
const maxTimerMs = 2 ** 31 - 1;

/**
 * A timer for a time that a user gave. `undefined`, and nothing is ever called, for `Infinity` and for
 * what is longer than timers can be.
 */
export function startTimer(durationMs: number, onTime: () => void): NodeJS.Timeout | undefined {
  return durationMs > maxTimerMs ? undefined : setTimeout(onTime, durationMs);
}

/**
 * The same for a limit of another thread or process: calls `onTime` behind a read of all that has come. A loop that
 * was blocked meanwhile finds its timers before the answers. May call once after `clearTimeout`: `onTime` checks
 * whether the limit still counts.
 */
export function startAnswerTimer(
  durationMs: number,
  onTime: () => void,
): NodeJS.Timeout | undefined {
  return startTimer(durationMs, () => setImmediate(onTime));
}

export interface Deadline {
  /** From now on; `Infinity`, and what timers cannot have, waits until `signal`. */
  readonly deadlineMs: number;
  /** Makes what the wait rejects with at the deadline. */
  readonly onDeadline: () => Error;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Settles as `work` does, or rejects first: at the deadline with what `onDeadline` makes, on abort
 * with `ABORTED`. Reads first what has come while the loop was blocked. A later rejection of `work` counts as
 * handled. Keeps the event loop alive meanwhile.
 */
export function beforeDeadline<T>(work: Promise<T>, deadline: Deadline): Promise<T> {
  const { deadlineMs, onDeadline, signal } = deadline;
  return new Promise<T>((resolve, reject) => {
    let isSettled = false;
    const onAbort = () => settle(() => reject(abortError(signal)));
    const timer = startAnswerTimer(deadlineMs, () => {
      if (!isSettled) settle(() => reject(onDeadline()));
    });
    const settle = (how: () => void) => {
      isSettled = true;
      clearTimeout(timer);
      if (signal !== undefined) unwatchAbort(signal, onAbort);
      how();
    };
    work.then(
      (value) => settle(() => resolve(value)),
      (error: unknown) => settle(() => reject(error)),
    );
    if (signal?.aborted) onAbort();
    else if (signal !== undefined) watchAbort(signal, onAbort);
  });
}

/** The error for an aborted `signal`: `ABORTED`, with the signal's own reason as `cause`. */
export function abortError(signal: AbortSignal | undefined): CodedError {
  const reason: unknown = signal?.reason;
  return new CodedError('ABORTED', `the signal was aborted: ${messageOf(reason)}`, {
    cause: reason,
  });
}

/** The error for a task that exceeded its `timeoutMs`; `''` for a function without a name. */
export function timeoutError(taskName: string, timeoutMs: number): CodedError {
  return new CodedError(
    'TASK_TIMED_OUT',
    `${taskName || 'the task'} ran longer than ${timeoutMs} ms: raise timeoutMs or split the work`,
  );
}
