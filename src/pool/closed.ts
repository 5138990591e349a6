// What callers of a pool hear that has been closed.

import { CodedError } from '../errors.js';

export function closedError(): CodedError {
  return new CodedError('POOL_CLOSED', 'the pool is closed: make a new Pool for further calls');
}

export function destroyedError(): CodedError {
  return new CodedError(
    'POOL_CLOSED',
    'the pool was destroyed before the task ended: close() waits for what was called',
  );
}
