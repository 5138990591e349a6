// The end of a worker, in words and as facts. Not here: the consequences for its tasks (pool/).

import { hasCode } from '../../errors.js';
import { messageOf } from '../../lib/index.js';
import type { ReachedLimit, WorkerExit } from '../types.js';

/** Returns "with exit code 3" or "by SIGKILL". */
export function describeExit(exit: WorkerExit): string {
  if (exit.signal !== null) return `by ${exit.signal}`;
  return `with exit code ${exit.exitCode ?? 'unknown'}`;
}

/** Exit code of a process that called abort(), as V8 does without heap, on systems without signals. */
const abortExitCode = 134;

/**
 * Signals and shell exit codes of crashes from inside the process. V8 without heap ends by most of them.
 */
const crashes: ReadonlySet<string | number | null> = new Set([
  'SIGABRT',
  'SIGBUS',
  'SIGILL',
  'SIGSEGV',
  'SIGTRAP',
  132,
  133,
  134,
  135,
  139,
]);

/** True: not sent by another process; the system ended the program for an error of its own. */
export function isCrash(signalOrExitCode: string | number | null): boolean {
  return crashes.has(signalOrExitCode);
}

/** True: it may have run out of heap. A thread has an error for that; a process only aborts. */
export function mayLackHeap({ exitCode, signal, error }: WorkerExit): boolean {
  if (signal === 'SIGABRT') return true;
  if (exitCode === abortExitCode && process.platform === 'win32') return true;
  return error !== undefined && 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY';
}

/** Returns a value that was thrown and not caught in a worker, as an error. */
export function uncaughtError(thrown: unknown): Error {
  if (thrown instanceof Error && typeof thrown.message === 'string') return thrown;
  return new Error(`${messageOf(thrown)} was thrown`, { cause: thrown });
}

/**
 * Adds the reason to an exit: the worker's own message, that of its start or thread, or its channel's
 * error. `ofChannel`: the limit of a partition for which its channel was ended.
 */
export function withReason(
  exit: WorkerExit,
  uncaught: Error | undefined,
  channelError: Error | undefined,
  ofChannel: ReachedLimit | undefined,
): WorkerExit {
  const isUncaught = uncaught !== undefined && exit.exitCode !== 0;
  const own = isUncaught ? uncaught : exit.error;
  const limit = ofChannel ?? exit.limit;
  return { ...exit, error: own ?? unreadableError(channelError, ofChannel), isUncaught, limit };
}

function unreadableError(error: Error | undefined, limit: ReachedLimit | undefined) {
  if (!isUnreadable(error)) return undefined;
  return limit?.name === 'result' ? new Error(limit.reason, { cause: error }) : error;
}

/** True: the channel could not be read further. An end together with its worker adds no information. */
export function isUnreadable(channelError: Error | undefined): boolean {
  return (
    hasCode(channelError, 'SEGMENT_CORRUPT') ||
    hasCode(channelError, 'CHANNEL_FRAME_CORRUPT') ||
    hasCode(channelError, 'NATIVE_REFUSED') || // no mapping for a large frame
    hasCode(channelError, 'WORKER_PROTOCOL') ||
    hasCode(channelError, 'PARTITION_CODE') ||
    hasCode(channelError, 'TRANSFER_CORRUPT') // by a partition, which is not trusted any more
  );
}
