// Transactions that wait: they sleep until a variable that they have read changes. A thread of the process sleeps
// for its event loops (crates/core/src/stm/waiter.rs) and wakes this one, which checks each of its sleepers.
// Not here: running a transaction (atomically.ts).

import { CodedError } from '../errors.js';
import {
  abortError,
  abortSignal,
  clearTimeout,
  LoopHold,
  notFunction,
  number,
  ownOptions,
  startTimer,
  unwatchAbort,
  watchAbort,
} from '../lib/index.js';
import { callNative } from '../native.js';
import { finish, runUntilDone } from './atomically.js';
import type { Watched } from './attempt.js';
import { desk } from './desk.js';
import { onWake } from './space.js';
import { holdMemory, runningAttempt, threadState } from './tvar.js';

export interface WhenOptions {
  /** Ends the wait: the promise rejects with `ABORTED`. */
  readonly signal?: AbortSignal;
  /** Longest wait in ms: then the promise rejects with `STM_TIMED_OUT`. Default: no limit. */
  readonly timeoutMs?: number;
}

const optionNames: ReadonlySet<string> = new Set(['signal', 'timeoutMs']);

interface Sleeper extends Watched {
  readonly wake: () => void;
  /** Ends its hold on the memory. */
  readonly release: () => void;
}

const sleepers = new Set<Sleeper>();
const hold = new LoopHold();
onWake(checkAll);

/**
 * Calls `fn` as a transaction, as `atomically` does. Where it calls `retry`, waits until a variable that it has read
 * changes, and calls it again. Rejects with what `fn` throws, `ABORTED`, `STM_TIMED_OUT`, `STM_SIDE_EFFECT`, and what
 * `atomically` throws.
 */
export async function atomicallyWhen<T>(fn: () => T, options: WhenOptions = {}): Promise<T> {
  if (typeof fn !== 'function') throw notFunction('the transaction', fn);
  const given = ownOptions('the options of atomicallyWhen()', options, optionNames);
  const signal = abortSignal(given.signal);
  const timeoutMs = number('timeoutMs', given.timeoutMs ?? Infinity, 0);
  if (runningAttempt() !== undefined) {
    throw new CodedError(
      'STM_SIDE_EFFECT',
      'atomicallyWhen() was called in a transaction, which cannot wait: call fn itself, or after it',
    );
  }
  if (signal?.aborted) throw abortError(signal);
  const limit = new Limit(signal, timeoutMs);
  try {
    for (;;) {
      const run = runUntilDone(fn);
      if (run.how === 'committed') return finish(run.result, run.effects);
      if (run.watched.reads.length === 0 && signal === undefined && timeoutMs === Infinity) {
        throw new CodedError(
          'STM_WOULD_BLOCK',
          'the transaction waits for ever: it has read no variable that could change',
        );
      }
      await limit.beforeEnd(run.watched);
    }
  } finally {
    limit.end();
  }
}

/** The end of a wait before a change: a signal, a time. */
class Limit {
  readonly #signal: AbortSignal | undefined;
  readonly #timer: NodeJS.Timeout | undefined;
  readonly #onAbort = (): void => this.#fail(abortError(this.#signal));
  #error: Error | undefined;
  #reject: ((error: Error) => void) | undefined;

  constructor(signal: AbortSignal | undefined, timeoutMs: number) {
    this.#signal = signal;
    if (signal !== undefined) watchAbort(signal, this.#onAbort);
    this.#timer = startTimer(timeoutMs, () =>
      this.#fail(
        new CodedError(
          'STM_TIMED_OUT',
          `the transaction waited ${timeoutMs} ms for a change: raise timeoutMs, or leave it out`,
        ),
      ),
    );
  }

  #fail(error: Error): void {
    this.#error = error;
    this.#reject?.(error);
  }

  /** Resolves after a change of what is watched; rejects at the end before. */
  beforeEnd(watched: Watched): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#error !== undefined) {
        reject(this.#error);
        return;
      }
      const sleeper: Sleeper = {
        ...watched,
        wake: () => settle(resolve),
        release: holdMemory(),
      };
      const settle = (how: () => void): void => {
        this.#reject = undefined;
        endSleep(sleeper);
        how();
      };
      this.#reject = (error) => settle(() => reject(error));
      try {
        beginSleep(sleeper);
      } catch (error) {
        settle(() => reject(error));
      }
    });
  }

  end(): void {
    clearTimeout(this.#timer);
    if (this.#signal !== undefined) unwatchAbort(this.#signal, this.#onAbort);
  }
}

function beginSleep(sleeper: Sleeper): void {
  sleepers.add(sleeper);
  hold.hold();
  const { native } = threadState().space;
  callNative(() => native.beginSleep());
  checkOne(sleeper);
}

function endSleep(sleeper: Sleeper): void {
  if (!sleepers.delete(sleeper)) return;
  threadState().space.native.endSleep();
  if (sleepers.size === 0) hold.release();
  sleeper.release();
}

function checkAll(): void {
  callNative(() => threadState().space.native.takeWake());
  for (const sleeper of [...sleepers]) checkOne(sleeper);
}

/** Watches what a sleeper has read, and wakes it if that has changed already. */
function checkOne(sleeper: Sleeper): void {
  const { space } = threadState();
  space.desk.set(sleeper.reads, space.at.deskReads);
  space.desk[desk.readCount] = sleeper.reads.length;
  space.desk[desk.snapshot] = sleeper.snapshot;
  const { reads, headers } = sleeper;
  const isWatched = callNative(() => space.native.watch());
  // After the comparison of versions, which is true for objects that live.
  const isWhole = reads.every((at, index) => Atomics.load(space.words, at - 1) === headers[index]);
  if (!isWatched || !isWhole) sleeper.wake();
}
