// Calls that run in the caller's own process: `whenBusy: 'inline'`, and every parallel call of a task (its
// worker is one core, which is busy with the task). Signal and time limit apply, but no function can be
// ended here: one that goes on after its rejection has no effect, and one that never awaits is not
// interrupted at all.

import type { AnyFunction } from '../../context/index.js';
import { abortError, beforeDeadline, functionName, nowMs, timeoutError } from '../../lib/index.js';
import { type AnyGenerator, generatorOf, InlineReports } from '../../worker/index.js';
import type { FilledCallOptions } from '../options.js';
import { unwantedValue } from '../tasks/stream.js';

/** Settles as `work` does, or rejects first when the call's time is over or it was aborted. */
type Within = <T>(work: Promise<T>) => Promise<T>;

/**
 * Calls `fn` now; the items of a generator come as a stream, as from a worker. Rejects with what it throws,
 * with `ABORTED` (before the call: `fn` is not called) or `TASK_TIMED_OUT`.
 */
export async function callInline(
  fn: AnyFunction,
  args: readonly unknown[],
  options: FilledCallOptions,
): Promise<unknown> {
  if (options.signal?.aborted) throw abortError(options.signal);
  const within = limitsOf(fn, options);
  const reports = new InlineReports(options.onReport);
  let generator: AnyGenerator | undefined;
  try {
    const result = await within(reports.run(() => callNow(fn, args)));
    generator = generatorOf(result);
    return generator === undefined ? result : stream(generator, within, reports);
  } finally {
    if (generator === undefined) reports.end();
  }
}

/** Returns the limits of a call that begins now. */
function limitsOf(fn: AnyFunction, { signal, timeoutMs }: FilledCallOptions): Within {
  if (signal === undefined && timeoutMs === Infinity) return (work) => work;
  const endsAtMs = nowMs() + timeoutMs;
  const onDeadline = (): Error => timeoutError(functionName(fn), timeoutMs);
  return (work) => beforeDeadline(work, { deadlineMs: endsAtMs - nowMs(), onDeadline, signal });
}

async function callNow(fn: AnyFunction, args: readonly unknown[]): Promise<unknown> {
  return Reflect.apply(fn, undefined, args);
}

async function* stream(
  generator: AnyGenerator,
  within: Within,
  reports: InlineReports,
): AsyncGenerator<unknown> {
  let isSuspended = false;
  let isOver = false;
  try {
    while (true) {
      isSuspended = false;
      const step = await within(reports.run(() => nextOf(generator)));
      isOver = step.done === true;
      if (isOver) return step.value;
      isSuspended = true;
      const value: unknown = yield step.value;
      if (value !== undefined) throw unwantedValue(value);
    }
  } finally {
    if (isSuspended) await reports.run(() => endOf(generator));
    // Not awaited after the deadline: a generator that itself waits ends only after that.
    else if (!isOver) endOf(generator).catch(() => {});
    reports.end();
  }
}

async function nextOf(generator: AnyGenerator): Promise<IteratorResult<unknown>> {
  return generator.next();
}

async function endOf(generator: AnyGenerator): Promise<void> {
  await generator.return(undefined);
}
