// What counts as a failed start of a host, which is repeated after a while, and gives up after some in a row.

import { CodedError } from '../errors.js';
import { describeExit, type HostExit } from '../host/index.js';
import { messageOf } from '../internal/index.js';

interface EndedHost {
  readonly label: string;
  readonly tasksDone: number;
  readonly isRetiring: boolean;
  readonly isShared: boolean;
}

/**
 * What ended before it had done anything, and not by a task's doing, counts as a failed start. A shared
 * host may end by a task of others: it has an error when it did not.
 */
export function idleEnd(host: EndedHost, exit: HostExit): CodedError | undefined {
  if (host.tasksDone > 0 || host.isRetiring) return undefined;
  if (host.isShared && exit.error === undefined) return undefined;
  const why = exit.error === undefined ? '' : `: ${exit.error.message}`;
  const text = `${host.label} ended ${describeExit(exit)} before it had done anything${why}`;
  return new CodedError('HOST_START_FAILED', text, exit.error && { cause: exit.error });
}

export function asStartFailure(error: unknown): CodedError {
  if (error instanceof CodedError && error.code === 'HOST_START_FAILED') return error;
  const text = `no host could be started: ${messageOf(error)}`;
  return new CodedError('HOST_START_FAILED', text, { cause: error });
}
