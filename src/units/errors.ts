// Errors of deployments that several files of this part throw.

import { stackOfUser } from '../context/index.js';
import { CodedError, hasCode } from '../errors.js';
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

/** `guilty`: names of the units whose failure was the last one. */
export function groupFailed(
  names: readonly string[],
  guilty: readonly string[],
  why: string,
): CodedError {
  const text = `the group of ${names.join(', ')} was given up after too many failures`;
  const way = 'fix the cause, then deploy the group again';
  return new CodedError(
    'UNIT_FAILED',
    `${text}, the last one of ${guilty.join(', ')}: ${why}; ${way}`,
  );
}

export function stopFailed(name: string, cause: unknown): CodedError {
  if (cause instanceof CodedError && cause.code === 'UNIT_STOP_FAILED') return cause;
  return new CodedError('UNIT_STOP_FAILED', `${name} did not stop well: ${messageOf(cause)}`, {
    cause,
  });
}

/**
 * Returns the error for a loop that has not answered in time, with the option of `deploy` that allows more;
 * other errors as they are.
 */
export function silentLoop(
  loop: number,
  error: unknown,
  option: 'startTimeoutMs' | 'stopTimeoutMs',
  timeoutMs: number,
): unknown {
  if (!hasCode(error, 'BUS_TIMEOUT')) return error;
  const text = `loop ${loop} has not answered within ${option} (${timeoutMs} ms)`;
  return new Error(`${text}: a callback blocks it, or it needs a larger ${option}`, {
    cause: error,
  });
}

/** Returns the stack of the error that code of a unit threw; `undefined`: it is another error. */
export function unitStack(error: unknown): string | undefined {
  if (!(error instanceof CodedError) || !error.code.startsWith('UNIT_')) return undefined;
  const { cause } = error;
  if (cause instanceof CodedError) return unitStack(cause);
  return cause instanceof Error ? stackOfUser(cause) : undefined;
}

export function versionChanged(path: string, deployed: string, found: string): CodedError {
  const text = `${path} was edited after its deployment (version ${deployed}, and ${found} now)`;
  return new CodedError('UNIT_VERSION_CHANGED', `${text}: call redeploy(), or undo the edit`);
}
