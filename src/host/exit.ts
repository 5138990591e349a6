// How a host ended, in words and as facts. Not here: what becomes of its tasks (pool/).

import { CodedError, hasCode } from '../errors.js';
import { messageOf } from '../internal/index.js';
import type { HostExit } from './types.js';

/** "with exit code 3" or "by SIGKILL". */
export function describeExit(exit: HostExit): string {
  if (exit.signal !== null) return `by ${exit.signal}`;
  return `with exit code ${exit.exitCode ?? 'unknown'}`;
}

/** Exit code of a process that called abort(), as V8 does without heap, where there are no signals. */
const abortExitCode = 134;

/** Whether it may have run out of heap: a thread says so, a process only aborts. */
export function mayLackHeap({ exitCode, signal, error }: HostExit): boolean {
  if (signal === 'SIGABRT') return true;
  if (exitCode === abortExitCode && process.platform === 'win32') return true;
  return error !== undefined && 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY';
}

/** Node's exit code for a command line that it does not understand. */
const wrongFlagExitCode = 9;

/** Why a host will not be ready, known before it has ended. */
export interface StartFailure {
  readonly text: string;
  readonly cause: unknown;
}

/** What a host that was never ready is told as; `execArgv` are the flags that the user gave it. */
export function startError(
  label: string,
  known: StartFailure | undefined,
  exit: HostExit,
  execArgv: readonly string[],
): CodedError {
  const text = known?.text ?? exit.error?.message ?? describeEarlyExit(exit, execArgv);
  const cause = known === undefined ? exit.error : known.cause;
  return new CodedError('HOST_START_FAILED', `${label} did not start: ${text}`, { cause });
}

function describeEarlyExit(exit: HostExit, execArgv: readonly string[]): string {
  const text = `it ended first, ${describeExit(exit)}`;
  if (exit.exitCode !== wrongFlagExitCode) return text;
  const flags = execArgv.length === 0 ? '' : `execArgv (${execArgv.join(' ')}) and `;
  return `${text}, as Node does for flags that it does not know: look at ${flags}NODE_OPTIONS`;
}

/** What nothing caught in a host, as an error. */
export function uncaughtError(thrown: unknown): Error {
  if (thrown instanceof Error) return thrown;
  return new Error(`${messageOf(thrown)} was thrown`, { cause: thrown });
}

/** How a host ended, with why: what it said itself, what its start or thread said, or its channel. */
export function withReason(
  exit: HostExit,
  uncaught: Error | undefined,
  channelError: Error | undefined,
): HostExit {
  const isUncaught = uncaught !== undefined && exit.exitCode !== 0;
  const unreadable = isUnreadable(channelError) ? channelError : undefined;
  return { ...exit, error: (isUncaught ? uncaught : exit.error) ?? unreadable, isUncaught };
}

/** A channel that ends with its host says nothing new; one that could not be read further does. */
export function isUnreadable(channelError: Error | undefined): boolean {
  return (
    hasCode(channelError, 'SEGMENT_CORRUPT') ||
    hasCode(channelError, 'CHANNEL_FRAME_CORRUPT') ||
    hasCode(channelError, 'NATIVE_REFUSED') || // no mapping for a large frame
    hasCode(channelError, 'HOST_PROTOCOL')
  );
}
