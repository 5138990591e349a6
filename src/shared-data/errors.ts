// Errors that both kinds of shared data throw.

import { CodedError } from '../errors.js';

/** `what`: the call and its object, as `lock "x"`. */
export function timedOut(what: string, timeoutMs: number, hint: string): CodedError {
  const message = `${what} took more than ${timeoutMs} ms: ${hint}`;
  return new CodedError('SHARED_DATA_TIMED_OUT', message);
}

export function tooLarge(what: string, sizeBytes: number, wayOut: string): CodedError {
  const message = `${what} has ${sizeBytes} bytes: ${wayOut}`;
  return new CodedError('SHARED_DATA_TOO_LARGE', message);
}

export function lockLost(name: string, why: string): CodedError {
  const wayOut = 'stop the work, and acquire the lock again';
  return new CodedError('SHARED_LOCK_LOST', `the lock "${name}" is lost: ${why}: ${wayOut}`);
}
