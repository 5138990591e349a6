// Start failure of a worker that was ready, and ended before it had done anything.

import { CodedError } from '../../errors.js';
import { describeExit, type StartFailure, type WorkerExit } from '../../worker/index.js';

interface EndedWorker {
  readonly label: string;
  readonly tasksDone: number;
  readonly isRetiring: boolean;
  readonly isShared: boolean;
}

/**
 * Returns the start failure of a worker that ended before it had done anything, and not by a task's doing.
 * A shared worker may end by a task of another pool: then it has no error. Once it was ready, the cause may
 * pass: the connection that its set-up had opened, and lost.
 */
export function idleEnd(worker: EndedWorker, exit: WorkerExit): StartFailure | undefined {
  if (worker.tasksDone > 0 || worker.isRetiring) return undefined;
  if (worker.isShared && exit.error === undefined) return undefined;
  const why = exit.error === undefined ? '' : `: ${exit.error.message}`;
  const text = `${worker.label} ended ${describeExit(exit)} before it had done anything${why}`;
  const error = new CodedError('WORKER_START_FAILED', text, exit.error && { cause: exit.error });
  return { error, startsToBeSure: Infinity, signature: text };
}
