// Chooses the worker for the next task, and how much work a worker may have ahead. Pure.
//
// A worker that waits for its parent between two tasks loses the time of a message each way: much for a
// task of 1 µs, nothing for one of 100 ms. Work ahead of a worker hides that time, but a task that waits
// behind a long one would have been better off elsewhere. So workers get ahead only what is expected to be
// done soon: as many short tasks as fit `aheadMs`, one task up to `oneAheadMs`, none beyond; and a function
// that has never run goes to an idle worker.
//
// An idle worker is asleep: waking it costs both sides more than a few very short tasks. So work that a
// busy worker will finish within `wakeMs` goes there though another worker is idle. Tasks that finish
// faster than the caller hands them over (`handOverMs`) stay with one worker as long as it has room: the
// caller is the limit then, and a second worker would only cost wake-ups. Where a worker may have no more
// than one task, such a short task rather waits for the busy worker.
//
// A worker that works for another pool (serve) gets one task, and only when no other worker is to come: the
// task is reclaimed when one of them has nothing to do.
// Figures: bench/cases/throughput.js.

/** State of a worker on which the choice depends. */
export interface Candidate {
  readonly isOpen: boolean;
  readonly inFlight: number;
  /** Expected run time of the tasks in flight, in ms. */
  readonly pendingMs: number;
  /** Order in which workers were last used; higher is later. */
  readonly lastUsed: number;
  /** True: it works for another pool, for an unknown time. */
  readonly isBusyElsewhere: boolean;
}

export interface ScheduleLimits {
  /** Maximum number of tasks that run in a worker at a time. */
  readonly concurrentTasks: number;
  /** Maximum number of tasks in a worker, waiting ones included. */
  readonly maxInFlight: number;
  /** True: a task may wait in a worker that works for another pool. */
  readonly mayWaitElsewhere: boolean;
}

const wakeMs = 0.1;
const handOverMs = 0.002;
const worthWaitingMs = 0.01;
const aheadMs = 0.5;
const oneAheadMs = 5;

/** True: `worker` may get a task that is expected to run for `runMs` (`undefined`: unknown). */
export function hasRoom(
  worker: Candidate,
  runMs: number | undefined,
  limits: ScheduleLimits,
): boolean {
  if (!worker.isOpen || worker.inFlight >= limits.maxInFlight) return false;
  if (worker.isBusyElsewhere && !limits.mayWaitElsewhere) return false;
  if (worker.inFlight < limits.concurrentTasks) return true;
  if (worker.isBusyElsewhere) return false;
  if (isDoneWithin(worker, runMs, aheadMs)) return true;
  return worker.inFlight === limits.concurrentTasks && isDoneWithin(worker, runMs, oneAheadMs);
}

/**
 * Chooses the worker for a task: a busy one that is about to be done, else an idle one (the last used
 * first: its caches are warm, it may still be awake), else the one with the least work that has room.
 * `undefined`: the task waits; with `isPatient` also because a full worker is expected to have room before
 * an idle one is awake. Call it again without patience when that expectation fails.
 */
export function chooseWorker<C extends Candidate>(
  workers: readonly C[],
  runMs: number | undefined,
  limits: ScheduleLimits,
  isPatient: boolean,
): C | undefined {
  let best: C | undefined;
  let bestRank = 0;
  for (const worker of workers) {
    if (!hasRoom(worker, runMs, limits)) {
      if (isPatient && isWorthWaiting(worker, runMs, limits)) return undefined;
      continue;
    }
    const rank = rankOf(worker, runMs);
    if (best === undefined || rank > bestRank || (rank === bestRank && isBetter(worker, best))) {
      best = worker;
      bestRank = rank;
    }
  }
  return best;
}

const rankBusy = 0;
const rankIdle = 1;
const rankAlmostDone = 2;

function rankOf(worker: Candidate, runMs: number | undefined): number {
  if (worker.isBusyElsewhere) return rankBusy;
  if (worker.inFlight === 0) return rankIdle;
  const isVeryShort = runMs !== undefined && runMs <= handOverMs;
  return isDoneWithin(worker, runMs, isVeryShort ? aheadMs : wakeMs) ? rankAlmostDone : rankBusy;
}

/** True: a worker is full of work that is done before another would be awake. */
function isWorthWaiting(
  worker: Candidate,
  runMs: number | undefined,
  limits: ScheduleLimits,
): boolean {
  if (!worker.isOpen || worker.inFlight < limits.maxInFlight) return false;
  return isDoneWithin(worker, runMs, worthWaitingMs);
}

/** True: the worker is expected to finish its work and the new task within `limitMs`. */
function isDoneWithin(worker: Candidate, runMs: number | undefined, limitMs: number): boolean {
  return runMs !== undefined && worker.pendingMs + runMs <= limitMs;
}

/** Compares workers of one rank. */
function isBetter(worker: Candidate, than: Candidate): boolean {
  return worker.inFlight === 0
    ? worker.lastUsed > than.lastUsed
    : worker.pendingMs < than.pendingMs;
}
