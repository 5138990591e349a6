// Errors for a caller whose worker ended under its task.

import { CodedError } from '../../errors.js';
import { describeExit, mayLackHeap, type WorkerExit } from '../../worker/index.js';

/** A worker ended by itself; has its exit code or signal. */
export class WorkerExitedError extends CodedError {
  readonly exitCode: number | null;
  readonly signal: string | null;

  constructor(message: string, { exitCode, signal, error }: WorkerExit) {
    super('WORKER_EXITED', message, error === undefined ? undefined : { cause: error });
    this.exitCode = exitCode;
    this.signal = signal;
  }
}

/**
 * Makes the error for the caller of the task. `retries`: how often the task was run again before. `blamed`:
 * name of the task beside it that was ended. `module`: the module that was loading before the task could
 * begin.
 */
export function exitedError(
  workerLabel: string,
  exit: WorkerExit,
  taskName: string,
  retries: number,
  blamed: string | undefined,
  module: string | undefined,
): WorkerExitedError {
  const task = taskName || 'the task';
  const did = module === undefined ? `ran ${task}` : `loaded ${module} for ${task}`;
  const what = `${workerLabel} ended ${describeExit(exit)} while it ${did}`;
  const message =
    blamed === undefined
      ? `${what}${reasonOf(exit)}; ${module === undefined ? adviceFor(exit, retries) : loadAdvice}`
      : `${what}, because ${blamed} beside it went on after it was given up; ${neighbourAdvice}`;
  return new WorkerExitedError(message, exit);
}

/** Makes the error for listeners of a pool: the worker ran no task. */
export function lostError(workerLabel: string, exit: WorkerExit): WorkerExitedError {
  const what = `${workerLabel} ended ${describeExit(exit)} while it ran no task`;
  return new WorkerExitedError(`${what}${reasonOf(exit)}`, exit);
}

const neighbourAdvice =
  'use retry if the task may run twice, raise neighbourGraceMs, or let one worker run one task at a time';

const loadAdvice =
  'a worker imports again what a function imported, so the module must load there without ending it';

function reasonOf({ error, isUncaught = false, limit }: WorkerExit): string {
  if (error === undefined) return '';
  if (!isUncaught) return `: ${error.message}`;
  const hint = limit === undefined ? '' : ` (${limit.reason})`;
  return `, by an error that nothing caught: ${error.message}${hint}`;
}

function adviceFor(exit: WorkerExit, retries: number): string {
  if (mayLackHeap(exit)) {
    return 'its heap may have been full: give it less at a time, or raise maxHeapMb';
  }
  if (exit.isUncaught === true) return 'catch it in the timer, event or promise that throws it';
  return retries > 0
    ? `so did each worker of its ${retries} earlier runs: find the cause of these exits`
    : 'use retry if the task may run twice';
}
