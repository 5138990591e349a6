// Starts of a manager that fail: how long they are repeated, with which delays, and what is said meanwhile.
// As long as one worker works nobody is told to give up: the others are tried again and again.
// The rule is in docs/design/pool.md. Not here: which failure is sure to stay (worker/start-failure.ts).

import { emitWarning } from 'node:process';
import { CodedError } from '../errors.js';
import { announcements, clearTimeout, nowMs, setTimeout } from '../internal/index.js';
import { Patience, patienceDefaults } from '../supervise/index.js';
import type { StartFailure, WorkerKind } from '../worker/index.js';

/** How a pool's workers start. */
export interface PoolHealth {
  /** `degraded`: starts fail, and none has worked since. Tasks wait, or have fewer workers. */
  readonly state: 'ok' | 'degraded';
  /** Waves of starts that failed since the last one that worked; workers that start together are one wave. */
  readonly failedStarts: number;
  /** Since the first of them, in ms; 0 when `ok`. */
  readonly degradedMs: number;
  /** The message of the last failure; `undefined` when `ok`. */
  readonly reason: string | undefined;
}

/** A worker that was ready for so long has started well, whether it got a task or not; in ms. */
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
  /** Whether somebody waits for a worker that is still to start. */
  readonly isWaitedFor: () => boolean;
  readonly waitingTasks: () => number;
  readonly hasReadyWorker: () => boolean;
  readonly hasStartingWorker: () => boolean;
  /** The delay is over. */
  readonly onAgain: () => void;
  /** No worker starts. `isLasting`: none will; else what may be tried again may wait on. */
  readonly onGiveUp: (error: CodedError, isLasting: boolean) => void;
}

/** What is rejected within this time needs no warning before. */
const soonSeconds = 1;

export class Starts {
  /** Starts that had to wait, for `stats()`. */
  restarts = 0;
  readonly #options: StartsOptions;
  readonly #patience: Patience;
  #timer: NodeJS.Timeout | undefined;
  #steadyTimer: NodeJS.Timeout | undefined;
  /** A start failed for good while others are under way: no more until one of them is ready, or all have failed. */
  #isLeftToOthers = false;
  #failed: { count: number; readonly sinceMs: number; reason: string } | undefined;
  #hasWarned = false;

  constructor(options: StartsOptions) {
    this.#options = options;
    this.#patience = new Patience({ ...patienceDefaults, patienceMs: options.startRetryMs });
  }

  /** Whether a delay runs, in which nothing is to be started. Keeps the loop alive if it is waited for. */
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
    // A cause that is sure soon, and without a ready worker, rejects what waits within a second.
    if (startsToBeSure === Infinity || hasReadyWorker()) this.#warnOnce(error);
    if (next === 'again') {
      this.#startLater(delayMs, worker);
      return;
    }
    // What stays may be of that worker alone, as a wrong `env` of its place: the others decide.
    this.#isLeftToOthers = next === 'lasting' && hasStartingWorker();
    if (this.#isLeftToOthers) return;
    onGiveUp(this.#gaveUp(error, next === 'lasting'), next === 'lasting');
    if (hasReadyWorker()) this.#startLater(delayMs, worker);
    else {
      this.#patience.reset(); // the next call begins anew
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

  /** Without it a program whose workers cannot start is silent for `startRetryMs`. */
  #warnOnce(error: CodedError): void {
    if (this.#hasWarned || announcements.poolDegraded.hasSubscribers) return;
    const isReady = this.#options.hasReadyWorker();
    if (!isReady && this.#retrySeconds < soonSeconds) return; // the rejection says the same
    this.#hasWarned = true;
    const next = isReady
      ? 'the pool works with the workers that it has, and tries again'
      : `starts are repeated for up to ${this.#retrySeconds} s (startRetryMs), then what waits is rejected`;
    emitWarning(
      `${error.message}; ${next}: mend the cause; pool.stats().health and the channel ` +
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
      ? 'the next start would fail as well: mend that, and call again'
      : `${failed} failed in ${this.#retrySeconds} s: mend that, or raise startRetryMs`;
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

  /** A worker is ready: it counts as a start that worked when it stays. */
  ready(): void {
    this.#isLeftToOthers = false;
    if (this.#failed === undefined || this.#steadyTimer !== undefined) return;
    this.#steadyTimer = setTimeout(() => {
      this.#steadyTimer = undefined;
      if (this.#options.hasReadyWorker()) this.succeeded();
    }, steadyMs);
    this.#steadyTimer.unref();
  }

  /** A worker has answered its first task, or was ready for a while. */
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
