// How a worker ended, in words and as facts. Not here: what becomes of its tasks (pool/).

import { hasCode } from '../errors.js';
import { messageOf } from '../internal/index.js';
import type { WorkerExit } from './types.js';

/** "with exit code 3" or "by SIGKILL". */
export function describeExit(exit: WorkerExit): string {
  if (exit.signal !== null) return `by ${exit.signal}`;
  return `with exit code ${exit.exitCode ?? 'unknown'}`;
}

/** Exit code of a process that called abort(), as V8 does without heap, where there are no signals. */
const abortExitCode = 134;

/** Ends of a process from inside; as signals and as a shell's codes. V8 without heap ends by most of them. */
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

/** True: nobody sent it, the program did something that the system ends it for. */
export function isCrash(signalOrExitCode: string | number | null): boolean {
  return crashes.has(signalOrExitCode);
}

/** Whether it may have run out of heap: a thread says so, a process only aborts. */
export function mayLackHeap({ exitCode, signal, error }: WorkerExit): boolean {
  if (signal === 'SIGABRT') return true;
  if (exitCode === abortExitCode && process.platform === 'win32') return true;
  return error !== undefined && 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY';
}

/** What nothing caught in a worker, as an error. */
export function uncaughtError(thrown: unknown): Error {
  if (thrown instanceof Error) return thrown;
  return new Error(`${messageOf(thrown)} was thrown`, { cause: thrown });
}

/** How a worker ended, with why: what it said itself, what its start or thread said, or its channel. */
export function withReason(
  exit: WorkerExit,
  uncaught: Error | undefined,
  channelError: Error | undefined,
): WorkerExit {
  const isUncaught = uncaught !== undefined && exit.exitCode !== 0;
  const unreadable = isUnreadable(channelError) ? channelError : undefined;
  return { ...exit, error: (isUncaught ? uncaught : exit.error) ?? unreadable, isUncaught };
}

/** A channel that ends with its worker says nothing new; one that could not be read further does. */
export function isUnreadable(channelError: Error | undefined): boolean {
  return (
    hasCode(channelError, 'SEGMENT_CORRUPT') ||
    hasCode(channelError, 'CHANNEL_FRAME_CORRUPT') ||
    hasCode(channelError, 'NATIVE_REFUSED') || // no mapping for a large frame
    hasCode(channelError, 'WORKER_PROTOCOL')
  );
}
