// Waits for a condition with a deadline, never for a time. A wait that fails names its condition.
// Not here: the conditions.

import { setTimeout as sleep } from 'node:timers/promises';

/** A machine may give this run a fraction of its cores: failing late costs nothing when nothing fails. */
const defaultDeadlineMs = 30_000;
const firstPauseMs = 1;
const maxPauseMs = 50;

/**
 * Returns the first value of `condition` that is neither false nor undefined nor null. Calls it again and
 * again; a throw of `condition` counts as "not yet". Fails at the deadline with the last throw as its cause,
 * also when a promise of `condition` does not settle within `longestMs`: a short deadline ends no slow answer.
 */
export async function waitFor<T>(
  condition: () => T | Promise<T>,
  deadlineMs = defaultDeadlineMs,
  what = String(condition),
  longestMs = Math.max(deadlineMs, defaultDeadlineMs),
): Promise<Exclude<T, false | undefined | null>> {
  const end = performance.now() + deadlineMs;
  let lastError: unknown;
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, maxPauseMs)) {
    try {
      const asked = condition();
      const value = asked instanceof Promise ? await withDeadline(asked, longestMs, what) : asked;
      if (isThere(value)) return value;
      lastError = undefined;
    } catch (error) {
      lastError = error;
    }
    if (performance.now() > end) {
      throw new Error(`after ${deadlineMs} ms still not: ${what}`, { cause: lastError });
    }
    await sleep(pauseMs);
  }
}

function isThere<T>(value: T): value is Exclude<T, false | undefined | null> {
  return value !== false && value !== undefined && value !== null;
}

/** Settles as `promise` does, or fails after `deadlineMs` with an error that names `what`. */
export async function withDeadline<T>(
  promise: Promise<T>,
  deadlineMs: number,
  what: string,
): Promise<T> {
  const over = new AbortController();
  const timeUp = sleep(deadlineMs, undefined, { signal: over.signal }).then(
    () => Promise.reject(new Error(`after ${deadlineMs} ms still not: ${what}`)),
    () => new Promise<never>(() => {}),
  );
  try {
    return await Promise.race([promise, timeUp]);
  } finally {
    over.abort();
  }
}
