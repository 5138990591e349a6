// Errors of deployments that several files of this part throw.

import { CodedError } from '../errors.js';
import { messageOf } from '../lib/index.js';

export function startFailed(name: string, cause: unknown): CodedError {
  if (cause instanceof CodedError && /^(UNIT|TRANSFER)_/.test(cause.code)) return cause;
  return new CodedError('UNIT_START_FAILED', `${name} could not start: ${messageOf(cause)}`, {
    cause,
  });
}

export function stopFailed(name: string, cause: unknown): CodedError {
  if (cause instanceof CodedError && cause.code === 'UNIT_STOP_FAILED') return cause;
  return new CodedError('UNIT_STOP_FAILED', `${name} did not stop well: ${messageOf(cause)}`, {
    cause,
  });
}
