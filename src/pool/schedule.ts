// Which host gets the next task, and when a host may be given work ahead. Pure.
//
// A host that waits for its parent between two tasks loses the time of a message each way: much for a
// task of 1 µs, nothing for one of 100 ms. Work ahead of a host hides that time, but a task that waits
// behind a long one would have been better off elsewhere. So hosts get ahead only what is expected to
// be done soon: as many short tasks as fit `aheadMs`, one task up to `oneAheadMs`, none beyond; and a
// function that has never run goes to an idle host.
//
// An idle host is asleep: waking it costs both sides more than a few very short tasks. So work that a
// host at work will have done within `wakeMs` goes there though another host is idle. Tasks that are
// done faster than the caller hands them over (`handOverMs`) stay with one host as long as it has room:
// the caller is the limit then, and a second host would only cost wake-ups.
// Where a host may have no more than one task, such a short task rather waits for the busy host.
//
// A host that works for another pool (serve) gets one task, and only when there is no other host to come:
// it is taken back when one of them has nothing to do.
// Figures: bench/cases/throughput.js.

/** What the choice looks at in a host. */
export interface Candidate {
  readonly isOpen: boolean;
  readonly inFlight: number;
  /** Expected run time of what is in flight, in ms. */
  readonly pendingMs: number;
  /** Order in which hosts were last used; higher is later. */
  readonly lastUsed: number;
  /** It works for another pool, nobody knows how long. */
  readonly isBusyElsewhere: boolean;
}

export interface ScheduleLimits {
  /** Tasks that run in a host at a time. */
  readonly concurrentTasks: number;
  /** Tasks that a host may have at all. */
  readonly maxInFlight: number;
  /** Whether a task may wait in a host that works for another pool. */
  readonly mayWaitElsewhere: boolean;
}

const wakeMs = 0.1;
const handOverMs = 0.002;
const worthWaitingMs = 0.01;
const aheadMs = 0.5;
const oneAheadMs = 5;

/** Whether `host` may get a task that is expected to run for `runMs` (`undefined`: not known). */
export function hasRoom(
  host: Candidate,
  runMs: number | undefined,
  limits: ScheduleLimits,
): boolean {
  if (!host.isOpen || host.inFlight >= limits.maxInFlight) return false;
  if (host.isBusyElsewhere && !limits.mayWaitElsewhere) return false;
  if (host.inFlight < limits.concurrentTasks) return true;
  if (host.isBusyElsewhere) return false;
  if (isDoneWithin(host, runMs, aheadMs)) return true;
  return host.inFlight === limits.concurrentTasks && isDoneWithin(host, runMs, oneAheadMs);
}

/**
 * The host for a task: one at work that is about to be done, else an idle one (the last used first:
 * its caches are warm, it may still be awake), else the one with the least work that has room.
 * `undefined`: the task waits; for an `isPatient` one also because a full host will have room before
 * an idle one is awake. That is an expectation: ask again without patience when it fails.
 */
export function chooseHost<H extends Candidate>(
  hosts: readonly H[],
  runMs: number | undefined,
  limits: ScheduleLimits,
  isPatient: boolean,
): H | undefined {
  let best: H | undefined;
  let bestRank = 0;
  for (const host of hosts) {
    if (!hasRoom(host, runMs, limits)) {
      if (isPatient && isWorthWaiting(host, runMs, limits)) return undefined;
      continue;
    }
    const rank = rankOf(host, runMs);
    if (best === undefined || rank > bestRank || (rank === bestRank && isBetter(host, best))) {
      best = host;
      bestRank = rank;
    }
  }
  return best;
}

const rankBusy = 0;
const rankIdle = 1;
const rankAlmostDone = 2;

function rankOf(host: Candidate, runMs: number | undefined): number {
  if (host.isBusyElsewhere) return rankBusy;
  if (host.inFlight === 0) return rankIdle;
  const isVeryShort = runMs !== undefined && runMs <= handOverMs;
  return isDoneWithin(host, runMs, isVeryShort ? aheadMs : wakeMs) ? rankAlmostDone : rankBusy;
}

/** Whether a host is full of work that is done before another would be awake. */
function isWorthWaiting(
  host: Candidate,
  runMs: number | undefined,
  limits: ScheduleLimits,
): boolean {
  if (!host.isOpen || host.inFlight < limits.maxInFlight) return false;
  return isDoneWithin(host, runMs, worthWaitingMs);
}

/** Whether what the host has and the task on top of it are expected to be done within `limitMs`. */
function isDoneWithin(host: Candidate, runMs: number | undefined, limitMs: number): boolean {
  return runMs !== undefined && host.pendingMs + runMs <= limitMs;
}

/** Among hosts of one rank. */
function isBetter(host: Candidate, than: Candidate): boolean {
  return host.inFlight === 0 ? host.lastUsed > than.lastUsed : host.pendingMs < than.pendingMs;
}
