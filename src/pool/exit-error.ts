// What a caller hears when a host ends under its task.

import { CodedError } from '../errors.js';
import { describeExit, type HostExit, mayLackHeap } from '../host/index.js';

/** The host ended while it ran the task; says how. */
export class HostExitedError extends CodedError {
  readonly exitCode: number | null;
  readonly signal: string | null;

  /** `retries`: how often the task was run again before. */
  constructor(hostLabel: string, exit: HostExit, taskName: string, retries: number) {
    const why = exit.error === undefined ? '' : `: ${exit.error.message}`;
    const advice = mayLackHeap(exit)
      ? 'its heap may have been full: give it less at a time, or raise maxHeapMb'
      : retries > 0
        ? `so did each host of its ${retries} earlier runs: look for what ends them`
        : 'use retry if the task may run twice';
    super(
      'HOST_EXITED',
      `${hostLabel} ended ${describeExit(exit)} while it ran ${taskName || 'the task'}${why}; ${advice}`,
      exit.error === undefined ? undefined : { cause: exit.error },
    );
    this.exitCode = exit.exitCode;
    this.signal = exit.signal;
  }
}
