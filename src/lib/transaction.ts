// Refusals of effects in a transaction (stm/) of this thread. What it calls may be called again, so it must have
// no effect outside: parts that have one ask here first.

import { CodedError } from '../errors.js';

let isRunning = false;

export function setTransactionRunning(isTrue: boolean): void {
  isRunning = isTrue;
}

/** Throws `STM_SIDE_EFFECT` in a transaction. `what`: the call that would be made again with it. */
export function refuseInTransaction(what: string): void {
  if (!isRunning) return;
  throw new CodedError(
    'STM_SIDE_EFFECT',
    `${what} was called in a transaction, which may run several times: use afterCommit() for it`,
  );
}
