// The end of a program is the end of its workers: they are asked to leave, so that their exit listeners run
// and what they hold is written, and are waited for a short while. Two ways:
//
// The event loop has run empty (`beforeExit`): workers leave as those of a pool that closes, and the loop goes
// on until they have. The program may still call new ones.
//
// `process.exit()` or an uncaught error (`exit`): nothing asynchronous runs any more. The channels are closed,
// and this thread sleeps until the processes have ended. A worker thread cannot be waited for there.
//
// A killed program runs neither: its workers watch it and leave by themselves (entry.ts).

import { isMainThread } from 'node:worker_threads';
import { nowMs, setTimeout } from '../internal/index.js';
import { isAlive } from '../proc/index.js';

/** A worker as this sees it. */
export interface EndingWorker {
  /** Its process; `undefined` for a thread, or before it has one. */
  readonly processId: number | undefined;
  /** Whether it has nothing in flight. */
  readonly isIdle: boolean;
  /** It gets nothing more, and leaves; its owner learns of it. */
  retire(): void;
  /** As `retire`, where its owner runs no more. */
  closeNow(): void;
  kill(): void;
}

/** How long workers may take to leave, in ms. */
const leaveMs = 1000;
/** Between two looks at processes that are to end, in ms. */
const recheckMs = 2;

const workers = new Set<EndingWorker>();

/** From now on `worker` leaves with the program, until `endsBefore`. */
export function endsWithProgram(worker: EndingWorker): void {
  if (workers.size === 0) {
    process.on('beforeExit', onLoopEmpty);
    process.on('exit', onExit);
  }
  workers.add(worker);
}

/** The worker has ended. */
export function endsBefore(worker: EndingWorker): void {
  if (!workers.delete(worker) || workers.size > 0) return;
  process.off('beforeExit', onLoopEmpty);
  process.off('exit', onExit);
}

function onLoopEmpty(): void {
  const leaving = [...workers];
  for (const worker of leaving) worker.retire();
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

/** One at work may not come to it for long: it is not waited for. */
function sleepUntilEnded(leaving: readonly EndingWorker[]): void {
  const pids = leaving.flatMap(({ processId = [] }) => processId);
  const word = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const endMs = nowMs() + leaveMs;
  while (pids.some(isAlive) && nowMs() < endMs) Atomics.wait(word, 0, 0, recheckMs);
}
