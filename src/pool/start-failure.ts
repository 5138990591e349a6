// A host that was ready, and ended before it had done anything: its start counts as failed.

import { CodedError } from '../errors.js';
import { describeExit, type HostExit, type StartFailure } from '../host/index.js';

interface EndedHost {
  readonly label: string;
  readonly tasksDone: number;
  readonly isRetiring: boolean;
  readonly isShared: boolean;
}

/**
 * What ended before it had done anything, and not by a task's doing, counts as a failed start. A shared
 * host may end by a task of others: it has an error when it did not. Once it was ready, what ended it may
 * pass: the connection that its set-up had opened, and lost.
 */
export function idleEnd(host: EndedHost, exit: HostExit): StartFailure | undefined {
  if (host.tasksDone > 0 || host.isRetiring) return undefined;
  if (host.isShared && exit.error === undefined) return undefined;
  const why = exit.error === undefined ? '' : `: ${exit.error.message}`;
  const text = `${host.label} ended ${describeExit(exit)} before it had done anything${why}`;
  const error = new CodedError('HOST_START_FAILED', text, exit.error && { cause: exit.error });
  return { error, startsToBeSure: Infinity, signature: text };
}
