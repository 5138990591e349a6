// One call from its beginning to its settling. Hot: every call makes one, so all fields are set in the
// constructor in one order, and rarely used ones (timer, listener) are `undefined` otherwise.
//
// States of a task, and who moves it. All but the constructor are methods of the dispatcher:
//
// - new → waiting: the constructor. In the queue, in a lane, or offered to a worker that starts.
// - waiting → sent: `#sent`, when a worker has the frame, or begins an offer (`#begun`).
// - sent → waiting: `#wait`, when it was reclaimed, or its worker ended before it began or with `retry` left.
// - sent → streaming: `onStream`, when the worker has called a generator. The caller has its stream.
// - waiting, sent, streaming → settled: `#settle`, once: result, error, abort, limit, refusal, end of the worker.
// - settled is the end. A worker that still runs the task may answer: `#settle` and `onStream` drop that.

import type { Packed } from '../channels/index.js';
import {
  type FunctionSnapshot,
  joinStacks,
  placeAt,
  settleWhereAwaited,
} from '../context/index.js';
import { hasCode } from '../errors.js';
import type { Call } from '../worker/index.js';
import { ChunkFailure } from './calls/pinned.js';
import type { FilledCallOptions } from './options.js';
import type { StreamReader } from './tasks/stream.js';

/** The header has the meaning of each, and the steps between them. */
export type TaskState = 'waiting' | 'sent' | 'streaming' | 'settled';

/** Expected run time of a function. Shared by all its tasks. */
export interface Estimate {
  /** Smoothed; `undefined` before the first answer. */
  runMs: number | undefined;
  /** True: the last run was far above the rest. */
  wasOutlier: boolean;
}

/**
 * Codes of errors that are made in a timer or by another call. Aborts have the stack of their signal's
 * abort as cause.
 */
const madeForOne = ['TASK_TIMED_OUT', 'TASK_WAITED_TOO_LONG', 'POOL_CLOSED'] as const;

export class Task implements Call {
  readonly id: number;
  readonly snapshot: FunctionSnapshot;
  readonly name: string;
  readonly options: FilledCallOptions;
  readonly estimate: Estimate;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
  readonly args: readonly unknown[];
  readonly packed: Packed | undefined;
  readonly isChunk: boolean;
  failedAt: number;
  /** For a chunk: the worker that answered. */
  workerLabel: string | undefined;
  state: TaskState;
  /** Run time in the worker's `pendingMs` while the task is there, in ms. */
  countedMs: number;
  /** Order in which tasks were handed over. */
  sequence: number;
  queuedMs: number;
  retriesLeft: number;
  /** Number of workers that ended while they loaded its modules. */
  lostLoads: number;
  timer: NodeJS.Timeout | undefined;
  /** True: its time was over before it began, and was extended once. */
  wasLate: boolean;
  abortListener: (() => void) | undefined;

  constructor(
    id: number,
    snapshot: FunctionSnapshot,
    name: string,
    args: readonly unknown[],
    packed: Packed | undefined,
    options: FilledCallOptions,
    estimate: Estimate,
    isChunk: boolean,
    resolve: (value: unknown) => void,
    reject: (error: unknown) => void,
  ) {
    this.id = id;
    this.snapshot = snapshot;
    this.name = name;
    this.options = options;
    this.estimate = estimate;
    this.resolve = resolve;
    this.reject = reject;
    this.args = args;
    this.packed = packed;
    this.isChunk = isChunk;
    this.failedAt = -1;
    this.workerLabel = undefined;
    this.state = 'waiting';
    this.countedMs = 0;
    this.sequence = 0;
    this.queuedMs = 0;
    this.retriesLeft = options.retry;
    this.lostLoads = 0;
    this.timer = undefined;
    this.wasLate = false;
    this.abortListener = undefined;
  }

  /** Rejects with an error from a worker, or of its end, with the caller's frames below the worker's. */
  rejectFromWorker(error: unknown, workerLabel: string): void {
    if (this.isChunk) {
      this.reject(new ChunkFailure(error, this.failedAt, workerLabel));
      return;
    }
    settleWhereAwaited(this.resolve, (site) => {
      joinStacks(error, site, workerLabel);
      throw error;
    });
  }

  /** Rejects with an error of the pool, with the caller's frames if it was made for this task alone. */
  rejectHere(error: unknown): void {
    if (this.isChunk || !madeForOne.some((code) => hasCode(error, code))) {
      this.reject(error);
      return;
    }
    settleWhereAwaited(this.resolve, (site) => {
      placeAt(error, site);
      throw error;
    });
  }

  /** Resolves with a stream that keeps the place where it was awaited: its error gets those frames. */
  resolveWithStream(stream: StreamReader): void {
    settleWhereAwaited(this.resolve, (site) => {
      stream.site = site;
      return stream;
    });
  }
}

/** A run longer by this factor is ignored once. */
const outlierFactor = 8;

/**
 * Updates the estimate by one run. Longer runs count at once for half, so that a slow task is noticed
 * early; but a single run far above the rest (a collection, a core taken away) counts only when another
 * follows.
 */
export function learn(estimate: Estimate, ranMs: number): void {
  const known = estimate.runMs;
  if (known === undefined) {
    estimate.runMs = ranMs;
    return;
  }
  const isOutlier = ranMs > known * outlierFactor;
  const isDoubted = isOutlier && !estimate.wasOutlier;
  estimate.wasOutlier = isOutlier;
  if (!isDoubted) estimate.runMs = known + (ranMs - known) * (ranMs > known ? 0.5 : 0.2);
}
