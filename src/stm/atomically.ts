// Runs functions as transactions: again after a conflict, as parts that can be undone, or when something that they
// read has changed. Semantics of Harris, Marlow, Peyton Jones, Herlihy 2005: composable memory transactions.
// Not here: one attempt (attempt.ts), sleeping (sleep.ts).

import { isGeneratorObject, isPromise } from 'node:util/types';
import { CodedError, hasCode } from '../errors.js';
import { notFunction, setTransactionRunning } from '../lib/index.js';
import { callNative } from '../native.js';
import { type Attempt, leave, type Watched } from './attempt.js';
import { insideOf, leaveIfUnused, runningAttempt, setRunning, threadState } from './tvar.js';

/** Attempts in vain after which others may not commit meanwhile. */
const attemptsBeforeSerial = 32;
/** Loads of a word in the longest pause. */
const maxPause = 1024;

const none: readonly (() => void)[] = [];

/** The end of one run: its result, or why it did not commit. */
type Run<T> =
  | { readonly how: 'committed'; readonly result: T; readonly effects: readonly (() => void)[] }
  | { readonly how: 'conflict' }
  | { readonly how: 'blocked'; readonly watched: Watched };

/**
 * Calls `fn` as one transaction: others see all that it sets, or nothing, at one moment. It is called again after a
 * conflict, so it must do nothing else than read and set variables; see `afterCommit`. Inside of another
 * transaction it is a part of that. Whatever it throws undoes it and is thrown. Throws `STM_WOULD_BLOCK` where `fn`
 * calls `retry`, `STM_ASYNC`, `STM_SIDE_EFFECT`, `STM_TOO_LARGE`, `STM_STUCK`, `SHARED_MEMORY_FULL`.
 */
export function atomically<T>(fn: () => T): T {
  if (typeof fn !== 'function') throw notFunction('the transaction', fn);
  if (runningAttempt() !== undefined) return synchronous(fn());
  const run = runUntilDone(fn);
  if (run.how === 'committed') return finish(run.result, run.effects);
  throw new CodedError(
    'STM_WOULD_BLOCK',
    'the transaction would wait, by retry() or by an empty or full queue: use atomicallyWhen() to wait for a change',
  );
}

/** @internal Runs `fn` until it commits or blocks. */
export function runUntilDone<T>(fn: () => T): Exclude<Run<T>, { how: 'conflict' }> {
  const { attempt, space } = threadState();
  let isSerial = false;
  let isCollected = false;
  try {
    for (let failures = 0; ; failures += 1) {
      let run: Run<T>;
      try {
        run = runOnce(attempt, fn);
      } catch (error) {
        if (isCollected || !hasCode(error, 'SHARED_MEMORY_FULL')) throw error;
        // Memory that earlier transactions have freed may wait for commits, which need memory themselves.
        isCollected = true;
        attempt.collect();
        continue;
      }
      if (run.how !== 'conflict') return run;
      if (failures < attemptsBeforeSerial) pause(failures);
      else if (!isSerial) isSerial = callNative(() => space.native.beginSerial());
    }
  } finally {
    if (isSerial) callNative(() => space.native.endSerial());
    leaveIfUnused();
  }
}

function runOnce<T>(attempt: Attempt, fn: () => T): Run<T> {
  attempt.begin();
  setRunning(attempt);
  setTransactionRunning(true);
  let isCommitted = false;
  try {
    const result = fn();
    if (attempt.ending === undefined) {
      synchronous(result);
      const effects = attempt.afterCommit.length === 0 ? none : attempt.afterCommit.slice();
      isCommitted = attempt.tryCommit();
      return isCommitted ? { how: 'committed', result, effects } : { how: 'conflict' };
    }
  } catch (error) {
    // A function may catch `leave` and throw something else: the attempt is over all the same.
    if (attempt.ending === undefined) throw error;
  } finally {
    setTransactionRunning(false);
    setRunning(undefined);
    if (!isCommitted && attempt.ending !== 'blocked') attempt.drop();
  }
  if (attempt.ending !== 'blocked') return { how: 'conflict' };
  const watched = attempt.readsToWatch();
  attempt.drop();
  return watched === undefined ? { how: 'conflict' } : { how: 'blocked', watched };
}

/** @internal Calls what was to follow the commit, all of it; throws the first error. */
export function finish<T>(result: T, effects: readonly (() => void)[]): T {
  const errors: unknown[] = [];
  for (const effect of effects) {
    try {
      effect();
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0) throw errors[0];
  return result;
}

function isThenable(value: unknown): boolean {
  if (isPromise(value)) return true;
  return (
    typeof value === 'object' && value !== null && typeof Reflect.get(value, 'then') === 'function'
  );
}

/** Returns the result of a function of a transaction. Throws `STM_ASYNC` for a promise or a generator. */
function synchronous<T>(result: T): T {
  const isGenerator = isGeneratorObject(result);
  if (!isGenerator && !isThenable(result)) return result;
  // A later failure of the promise, outside of the transaction, is a consequence of this one.
  if (isPromise(result)) Promise.prototype.then.call(result, undefined, () => {});
  throw new CodedError(
    'STM_ASYNC',
    `the function of a transaction returned a ${isGenerator ? 'generator' : 'promise'}: it must be synchronous; await before or after it`,
  );
}

/** Waits a little, longer after each failure, so that one of two that collide comes first. */
function pause(failures: number): void {
  const { words, at } = threadState().space;
  const loads = Math.random() * Math.min(2 ** failures, maxPause);
  for (let count = 0; count < loads; count += 1) Atomics.load(words, at.clock);
}

/** Gives the transaction up until one of the variables that it has read changes. Throws `STM_OUTSIDE`. */
export function retry(): never {
  throw insideOf('retry()').end('blocked');
}

/** The same unless `condition` is true. */
export function check(condition: boolean): void {
  if (!condition) retry();
}

/**
 * Calls the first function; where it calls `retry`, undoes what it has set and calls the next one. Only when all
 * retry, the whole does. Outside of a transaction it is one.
 */
export function orElse<T>(...ways: readonly (() => T)[]): T {
  for (const way of ways)
    if (typeof way !== 'function') throw notFunction('a way of orElse()', way);
  const attempt = runningAttempt();
  if (attempt === undefined) return atomically(() => orElse(...ways));
  for (const way of ways) {
    const mark = attempt.mark();
    try {
      const result = way();
      if (attempt.ending === undefined) {
        if (isThenable(result)) attempt.undo(mark);
        else attempt.merge(mark);
        return synchronous(result);
      }
    } catch (error) {
      if (attempt.ending === undefined) {
        attempt.merge(mark);
        throw error;
      }
    }
    if (attempt.ending === 'conflict') throw leave;
    attempt.undo(mark);
    attempt.ending = undefined;
  }
  throw attempt.end('blocked');
}

/**
 * Calls `fn` as a part: what it throws undoes what it has set and is thrown, so that the transaction around may
 * catch it and go on. Outside of a transaction it is one.
 */
export function nested<T>(fn: () => T): T {
  if (typeof fn !== 'function') throw notFunction('the part', fn);
  const attempt = runningAttempt();
  if (attempt === undefined) return atomically(fn);
  const mark = attempt.mark();
  try {
    const result = synchronous(fn());
    attempt.merge(mark);
    return result;
  } catch (error) {
    if (attempt.ending === undefined) attempt.undo(mark);
    throw error;
  }
}

/** Calls `effect` once, after the commit of the transaction that runs; never, where it does not commit. */
export function afterCommit(effect: () => void): void {
  if (typeof effect !== 'function') throw notFunction('the effect', effect);
  insideOf('afterCommit()').afterCommit.push(effect);
}
