// The end of a program ends its workers: they are closed, so that their exit listeners run and their
// buffers are written, and are awaited for a short while. Two ways:
//
// The event loop has run empty (`beforeExit`): workers leave as those of a pool that closes, and the loop
// goes on until they have. The program may still call new ones.
//
// `process.exit()` or an uncaught error (`exit`): nothing asynchronous runs any more. The channels are
// closed, and this thread sleeps until the processes have ended. A worker thread cannot be awaited there.
//
// A killed program runs neither: its workers watch it and leave by themselves (entry.ts).

import { isMainThread } from 'node:worker_threads';
import { nowMs, setTimeout } from '../../lib/index.js';
import { isAlive } from '../../proc/index.js';

/** The part of a worker that this file needs. */
export interface EndingWorker {
  /** The process id; `undefined` for a thread, or before it has one. */
  readonly processId: number | undefined;
  /** True: it has nothing in flight. */
  readonly isIdle: boolean;
  /** Gives it nothing more, and lets it leave. */
  leaveWithProgram(): void;
  /** The same when no event loop runs any more. */
  closeNow(): void;
  kill(): void;
}

/** Maximum time for workers to leave, in ms. */
const leaveMs = 1000;
/** Time between two checks of processes that are to end, in ms. */
const recheckMs = 2;

const workers = new Set<EndingWorker>();

/** Lets `worker` leave with the program, until `endsBefore`. */
export function endsWithProgram(worker: EndingWorker): void {
  if (workers.size === 0) {
    process.on('beforeExit', onLoopEmpty);
    process.on('exit', onExit);
  }
  workers.add(worker);
}

/** Removes a worker that has ended. */
export function endsBefore(worker: EndingWorker): void {
  if (!workers.delete(worker) || workers.size > 0) return;
  process.off('beforeExit', onLoopEmpty);
  process.off('exit', onExit);
}

function onLoopEmpty(): void {
  const leaving = [...workers];
  for (const worker of leaving) worker.leaveWithProgram();
  // Not held: a worker that leaves holds the loop itself until it has.
  setTimeout(() => {
    for (const worker of leaving) if (workers.has(worker)) worker.kill();
  }, leaveMs).unref();
}

function onExit(): void {
  for (const worker of workers) worker.closeNow();
  sleepUntilEnded([...workers].filter(({ isIdle }) => isIdle));
  // Workers watch our process, which goes on when this thread ends.
  if (!isMainThread) for (const worker of workers) worker.kill();
}

/**
 * Sleeps until idle workers have ended. A busy one may not read the close for long, so it is not awaited.
 */
function sleepUntilEnded(leaving: readonly EndingWorker[]): void {
  const pids = leaving.flatMap(({ processId = [] }) => processId);
  const word = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const endMs = nowMs() + leaveMs;
  while (pids.some(isAlive) && nowMs() < endMs) Atomics.wait(word, 0, 0, recheckMs);
}
