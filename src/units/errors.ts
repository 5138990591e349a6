// Errors of deployments that several files of this part throw.

import { CodedError } from '../errors.js';
import { messageOf } from '../lib/index.js';

export function startFailed(name: string, cause: unknown): CodedError {
  if (cause instanceof CodedError && /^(UNIT|TRANSFER)_/.test(cause.code)) return cause;
  return new CodedError('UNIT_START_FAILED', `${name} could not start: ${messageOf(cause)}`, {
    cause,
  });
}

export function unitFailed(name: string, instances: readonly number[], why: string): CodedError {
  const which =
    instances.length === 1 ? `instance ${instances[0]}` : `instances ${instances.join(', ')}`;
  const were = instances.length === 1 ? 'was' : 'were';
  const text = `${which} of ${name} ${were} given up after too many failures, the last one: ${why}`;
  const way = 'fix the cause, then scale the deployment or deploy it again';
  return new CodedError('UNIT_FAILED', `${text}; ${way}`);
}

export function stopFailed(name: string, cause: unknown): CodedError {
  if (cause instanceof CodedError && cause.code === 'UNIT_STOP_FAILED') return cause;
  return new CodedError('UNIT_STOP_FAILED', `${name} did not stop well: ${messageOf(cause)}`, {
    cause,
  });
}
