// The end of a worker, or a loop: its output is written first, and registered work is done.

import { clearTimeout, nextTick, setImmediate, setTimeout } from '../../lib/index.js';

/** Default maximum time for that work; then the worker leaves anyway. */
const shortMs = 500;
/** Maximum time for a user's teardown: a parent that waits for the worker may end it earlier. */
export const teardownMs = 30_000;
const works: { readonly work: () => Promise<unknown>; readonly maxMs: number }[] = [];

/** Begins `work` when this thread is to leave, and waits for it at most `maxMs`. */
export function beforeLeaving(work: () => Promise<unknown>, maxMs = shortMs): void {
  works.push({ work, maxMs });
}

/**
 * Does that work, and calls `then` once: at once if there is none, after the maximum time at the latest.
 */
export function finishWork(then: () => void): void {
  if (works.length === 0) {
    then();
    return;
  }
  let isOver = false;
  const end = (): void => {
    if (isOver) return;
    isOver = true;
    clearTimeout(timer);
    then();
  };
  const timer = setTimeout(end, Math.max(...works.map(({ maxMs }) => maxMs)));
  void Promise.allSettled(works.map(({ work }) => work())).then((outcomes) => {
    for (const outcome of outcomes) {
      // Rethrown as an uncaught error, which it is.
      if (outcome.status === 'rejected') nextTick(() => rethrow(outcome.reason));
    }
    setImmediate(end);
  });
}

function rethrow(error: unknown): never {
  throw error;
}

/** Calls `onFatal` with an uncaught error, before it ends this thread. */
export function beforeFatal(onFatal: (error: unknown) => void): void {
  process.on('uncaughtExceptionMonitor', (error: unknown) => {
    const isCaught =
      process.listenerCount('uncaughtException') > 0 ||
      process.hasUncaughtExceptionCaptureCallback();
    if (!isCaught) onFatal(error);
  });
}

export function leave(isProcess: boolean): void {
  const streams = isProcess ? [process.stdout, process.stderr] : [];
  let unwritten = 1;
  const oneLess = (): void => {
    unwritten -= 1;
    if (unwritten === 0) process.exit(0);
  };
  for (const stream of streams) {
    if (stream.writableLength === 0) continue;
    unwritten += 1;
    stream.write('', oneLess);
  }
  finishWork(oneLess);
}
