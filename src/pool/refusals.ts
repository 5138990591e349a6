// Errors for calls that a pool refuses, or does not finish.

import { CodedError } from '../errors.js';
import { messageOf } from '../lib/index.js';

export function closedError(): CodedError {
  return new CodedError('POOL_CLOSED', 'the pool is closed: make a new Pool for further calls');
}

export function destroyedError(): CodedError {
  return new CodedError(
    'POOL_CLOSED',
    'the pool was destroyed before the task ended: close() waits for what was called',
  );
}

/** For calls that took longer than the `timeoutMs` of `close`. */
export function closeTimedOutError(timeoutMs: number): CodedError {
  const text = `the pool was closed, and what was called took longer than its timeoutMs (${timeoutMs})`;
  return new CodedError('POOL_CLOSED', `${text}: raise it, or leave it out to wait for all`);
}

/** For calls that `cancelWaiting` removes. */
export function cancelledError(reason: unknown): CodedError {
  const why = reason === undefined ? '' : `: ${messageOf(reason)}`;
  const text = `the call was cancelled while it waited in the pool${why}`;
  return new CodedError('ABORTED', text, { cause: reason });
}

export function busyError(workers: number): CodedError {
  return new CodedError(
    'POOL_BUSY',
    `all ${workers} workers are at work: use whenBusy "queue" or "inline", or try later`,
  );
}

/** For calls and maps that would run code of a sandbox in the program. */
export function inlineError(): CodedError {
  return new CodedError(
    'OPTION_INVALID',
    'code of a sandbox never runs in the program: leave "inline" out for a pool of sandboxes',
  );
}

export function fullError(maxWaitingTasks: number): CodedError {
  return new CodedError(
    'POOL_QUEUE_FULL',
    `the queue is full: ${maxWaitingTasks} ${maxWaitingTasks === 1 ? 'task waits' : 'tasks wait'}; await some or raise maxWaitingTasks`,
  );
}

/** For a task of `runOnEach` whose worker has ended. */
export function workerGone(taskName: string): CodedError {
  const text = `${taskName || 'the task'} has not run: its worker leaves or has ended; call runOnEach again`;
  return new CodedError('WORKER_EXITED', text);
}

/** `why`: the reason that no worker has taken it. */
export function waitedError(taskName: string, maxQueueMs: number, why: string): CodedError {
  const text = `${taskName || 'the task'} waited longer than ${maxQueueMs} ms, and has not run: ${why}`;
  return new CodedError('TASK_WAITED_TOO_LONG', `${text}; call later, or raise maxQueueMs`);
}
