// Failing starts of workers: how long they are repeated, with which delays, and the warning meanwhile. As
// long as one worker works no task is rejected: the other starts are repeated again and again.
// The rule is in docs/design/pool.md. Not here: which failures are lasting (worker/parent/start-failure.ts).

import { emitWarning } from 'node:process';
import { CodedError } from '../../errors.js';
import {
  announcements,
  clearTimeout,
  nowMs,
  Patience,
  patienceDefaults,
  setTimeout,
} from '../../lib/index.js';
import type { StartFailure, WorkerKind } from '../../worker/index.js';

/** Health of the starts of a pool's workers. */
export interface PoolHealth {
  /** `degraded`: starts fail, and none has worked since. Tasks wait, or have fewer workers. */
  readonly state: 'ok' | 'degraded';
  /**
   * Waves of starts that failed since the last one that worked; workers that start together are one wave.
   */
  readonly failedStarts: number;
  /** Time since the first of them, in ms; 0 when `ok`. */
  readonly degradedMs: number;
  /** Message of the last failure; `undefined` when `ok`. */
  readonly reason: string | undefined;
}

/** Time after which a ready worker has started well, whether it got a task or not; in ms. */
const steadyMs = 1_000;

interface StartingWorker {
  readonly id: number;
  readonly pid: number | undefined;
  readonly startedAtMs: number;
}

export interface StartsOptions {
  readonly poolId: number;
  readonly kind: WorkerKind;
  readonly startRetryMs: number;
  /** True: a caller waits for a worker that is still to start. */
  readonly isWaitedFor: () => boolean;
  readonly waitingTasks: () => number;
  readonly hasReadyWorker: () => boolean;
  readonly hasStartingWorker: () => boolean;
  /** Called when the delay is over. */
  readonly onAgain: () => void;
  /** Called when no worker starts. `isLasting`: none will; otherwise tasks with retries may wait on. */
  readonly onGiveUp: (error: CodedError, isLasting: boolean) => void;
}

/** Within this time a rejection needs no warning before it. */
const soonSeconds = 1;

export class Starts {
  /** Starts that were delayed, for `stats()`. */
  restarts = 0;
  readonly #options: StartsOptions;
  readonly #patience: Patience;
  #timer: NodeJS.Timeout | undefined;
  #steadyTimer: NodeJS.Timeout | undefined;
  /**
   * True: a start failed for good while others are under way. No more start until one is ready, or all have
   * failed.
   */
  #isLeftToOthers = false;
  #failed: { count: number; readonly sinceMs: number; reason: string } | undefined;
  #hasWarned = false;

  constructor(options: StartsOptions) {
    this.#options = options;
    this.#patience = new Patience({ ...patienceDefaults, patienceMs: options.startRetryMs });
  }

  /** True: a delay runs, in which nothing may start. Keeps the loop alive if a caller waits. */
  get isPausing(): boolean {
    if (this.#timer !== undefined && this.#options.isWaitedFor()) this.#timer.ref();
    return this.#timer !== undefined || (this.#isLeftToOthers && this.#options.hasStartingWorker());
  }

  get health(): PoolHealth {
    if (this.#failed === undefined) {
      return { state: 'ok', failedStarts: 0, degradedMs: 0, reason: undefined };
    }
    const { count, sinceMs, reason } = this.#failed;
    const degradedMs = nowMs() - sinceMs;
    return { state: 'degraded', failedStarts: count, degradedMs, reason };
  }

  /** `worker`: the one that failed; `undefined`: none was made. */
  failed(
    { error, startsToBeSure, signature }: StartFailure,
    worker: StartingWorker | undefined,
  ): void {
    const { hasReadyWorker, hasStartingWorker, isWaitedFor, onGiveUp } = this.#options;
    const atMs = nowMs();
    const { next, delayMs, isNewWave } = this.#patience.failed({
      nowMs: atMs,
      beganMs: worker?.startedAtMs ?? atMs,
      signature: signature.replaceAll(/\d+/g, '#'),
      wavesToBeSure: startsToBeSure,
    });
    if (isNewWave) this.#degrade(error, atMs, delayMs);
    // A cause that is certain soon, and without a ready worker, rejects what waits within a second.
    if (startsToBeSure === Infinity || hasReadyWorker()) this.#warnOnce(error);
    if (next === 'again') {
      this.#startLater(delayMs, worker);
      return;
    }
    // A lasting cause may concern this worker alone, as a wrong `env` of its place: the others decide.
    this.#isLeftToOthers = next === 'lasting' && hasStartingWorker();
    if (this.#isLeftToOthers) return;
    onGiveUp(this.#gaveUp(error, next === 'lasting'), next === 'lasting');
    if (hasReadyWorker()) this.#startLater(delayMs, worker);
    else {
      this.#patience.reset(); // the next call starts afresh
      if (isWaitedFor()) this.#startLater(patienceDefaults.firstDelayMs, worker);
    }
  }

  #degrade(error: CodedError, nowMs: number, delayMs: number): void {
    clearTimeout(this.#steadyTimer);
    this.#steadyTimer = undefined;
    this.#failed ??= { count: 0, sinceMs: nowMs, reason: '' };
    this.#failed.count += 1;
    this.#failed.reason = error.message;
    if (!announcements.poolDegraded.hasSubscribers) return;
    const { poolId, waitingTasks } = this.#options;
    const { count, sinceMs, reason } = this.#failed;
    announcements.poolDegraded.publish({
      pool: poolId,
      failedStarts: count,
      degradedMs: nowMs - sinceMs,
      reason,
      delayMs,
      waitingTasks: waitingTasks(),
    });
  }

  /** Warns once; otherwise a program whose workers cannot start is silent for `startRetryMs`. */
  #warnOnce(error: CodedError): void {
    if (this.#hasWarned || announcements.poolDegraded.hasSubscribers) return;
    const isReady = this.#options.hasReadyWorker();
    if (!isReady && this.#retrySeconds < soonSeconds) return; // the rejection has the same text
    this.#hasWarned = true;
    const next = isReady
      ? 'the pool works with its other workers, and repeats the start'
      : `starts are repeated for up to ${this.#retrySeconds} s (startRetryMs), then waiting tasks are rejected`;
    emitWarning(
      `${error.message}; ${next}: fix the cause; pool.stats().health and the channel ` +
        'manycore:pool:degraded follow it',
      { type: 'ManycoreWarning', code: 'DEGRADED_POOL' },
    );
  }

  get #retrySeconds(): number {
    return Math.round(this.#options.startRetryMs / 100) / 10;
  }

  #gaveUp(error: CodedError, isLasting: boolean): CodedError {
    const { wavesInRow } = this.#patience;
    const failed = wavesInRow === 1 ? '1 start' : `${wavesInRow} starts in a row`;
    const why = isLasting
      ? 'the next start would fail as well: fix the cause, and call again'
      : `${failed} failed in ${this.#retrySeconds} s: fix the cause, or raise startRetryMs`;
    return new CodedError(error.code, `${error.message}; ${why}`, { cause: error.cause });
  }

  #startLater(delayMs: number, worker: StartingWorker | undefined): void {
    if (this.#timer !== undefined) return;
    this.restarts += 1;
    if (announcements.workerRestart.hasSubscribers) {
      const attempt = this.#patience.wavesInRow;
      const { kind } = this.#options;
      announcements.workerRestart.publish({
        worker: worker?.id ?? 0,
        kind,
        pid: worker?.pid,
        attempt,
        delayMs,
      });
    }
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#options.onAgain();
    }, delayMs);
    if (!this.#options.isWaitedFor()) this.#timer.unref();
  }

  /** Notes that a worker is ready: the start has worked when the worker stays. */
  ready(): void {
    this.#isLeftToOthers = false;
    if (this.#failed === undefined || this.#steadyTimer !== undefined) return;
    this.#steadyTimer = setTimeout(() => {
      this.#steadyTimer = undefined;
      if (this.#options.hasReadyWorker()) this.succeeded();
    }, steadyMs);
    this.#steadyTimer.unref();
  }

  /** Notes that a worker has answered its first task, or was ready for a while. */
  succeeded(): void {
    if (this.#failed === undefined) return;
    const degradedMs = nowMs() - this.#failed.sinceMs;
    this.#failed = undefined;
    this.#patience.reset();
    clearTimeout(this.#steadyTimer);
    this.#steadyTimer = undefined;
    const { poolId } = this.#options;
    if (announcements.poolRecovered.hasSubscribers) {
      announcements.poolRecovered.publish({ pool: poolId, degradedMs });
    }
  }

  stop(): void {
    clearTimeout(this.#timer);
    clearTimeout(this.#steadyTimer);
  }
}
