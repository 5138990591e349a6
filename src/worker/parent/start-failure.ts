// The reason of a failed start, and how certain the next one fails as well. A worker that was ended from
// outside, or that the system had no room for, may start a moment later; an unknown flag stays unknown.
// Not here: how long starts are repeated (pool/workers/starts.ts).

import { CodedError, hasCode } from '../../errors.js';
import { messageOf, prototypeRemedy } from '../../lib/index.js';
import { guestFailure } from '../partition/ends.js';
import type { WorkerExit, WorkerOptions } from '../types.js';
import { EntryMissingError } from './entry-file.js';
import { describeExit, isCrash, mayLackHeap } from './exit.js';
import { missingFileOf } from './flags.js';

/** A start that failed. */
export interface StartFailure {
  /** `WORKER_START_FAILED` */
  readonly error: CodedError;
  /**
   * Number of starts in a row that fail the same way until the cause is certain to stay; `Infinity`: it may
   * pass.
   */
  readonly startsToBeSure: number;
  /** Equal text for failures of one cause; numbers are left out. */
  readonly signature: string;
}

/** Reason why a worker will not be ready, known before it has ended. */
export interface KnownFailure {
  readonly text: string;
  /** Error of its set-up; `undefined`: none, it took too long. */
  readonly thrown: { readonly error: unknown } | undefined;
}

/** One failure is enough. */
const atOnce = 1;
/** The same error from the same code: the second time shows that it does not depend on the moment. */
const secondTime = 2;
/** An exit code does not name its cause: it may be the same by accident. */
const thirdTime = 3;
const mayPass = Infinity;

/** Resources that a machine or its network lacks now, and may have soon. */
const passingCodes: ReadonlySet<unknown> = new Set([
  'EAGAIN',
  'EAI_AGAIN',
  'EBUSY',
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTUNREACH',
  'EINTR',
  'EMFILE',
  'ENETUNREACH',
  'ENFILE',
  'ENOBUFS',
  'ENOMEM',
  'ENOSPC',
  'ENOTFOUND',
  'EPIPE',
  'ETIMEDOUT',
  'ETXTBSY',
  'ERR_WORKER_INIT_FAILED',
]);

/** Resources that a start lacks, now and later. */
const lastingCodes: ReadonlySet<unknown> = new Set([
  'E2BIG',
  'EACCES',
  'EINVAL',
  'ELOOP',
  'ENOENT',
  'ENOEXEC',
  'ENOTDIR',
  'EPERM',
  'ERR_WORKER_INVALID_EXEC_ARGV',
  'ERR_WORKER_PATH',
  'INTERNAL_STATE',
  'CLUSTER_CLOSED',
  'CLUSTER_UNSIGNED',
  'NATIVE_MISSING',
  'OPTION_INVALID',
]);

/** Lasting also inside a worker: no such module, or a right that Node was not given (`--permission`). */
const lastingInWorkerCodes: ReadonlySet<unknown> = new Set([
  'ERR_ACCESS_DENIED',
  'ERR_DLOPEN_DISABLED',
  'ERR_MODULE_NOT_FOUND',
  'ERR_PACKAGE_PATH_NOT_EXPORTED',
  'ERR_UNKNOWN_BUILTIN_MODULE',
  'ERR_UNKNOWN_FILE_EXTENSION',
  'ERR_UNSUPPORTED_DIR_IMPORT',
  'MODULE_NOT_FOUND',
]);

/** Node's exit code for a command line that it does not understand. */
const wrongFlagExitCode = 9;
/** A shell's exit codes for SIGKILL and SIGTERM. */
const killedExitCodes: ReadonlySet<number | null> = new Set([137, 143]);

const startsOfGuest = { surely: atOnce, maybe: thirdTime, unknown: mayPass } as const;

/** True: this machine lacks something that partitions need, which it names; no later start has more. */
function isOfPartition(error: unknown): error is CodedError {
  return error instanceof CodedError && error.code === 'PARTITION_UNAVAILABLE';
}

/**
 * Makes the failure of a worker that ended before it was ready; `known` is its own report, if it sent one. `hasBegun`:
 * its program has opened the channel.
 */
export function startFailure(
  label: string,
  known: KnownFailure | undefined,
  exit: WorkerExit,
  options: WorkerOptions,
  hasBegun = true,
): StartFailure {
  if (options.partition?.kind === 'vm' && !hasBegun && known?.thrown === undefined) {
    const { error, repeats } = guestFailure(options.partition, exit, known?.text);
    return { error, startsToBeSure: startsOfGuest[repeats], signature: error.message };
  }
  const text = known?.text ?? exit.error?.message ?? describeEarlyExit(exit, options);
  const cause = known === undefined ? exit.error : known.thrown?.error;
  if (isOfPartition(cause)) {
    return { error: cause, startsToBeSure: atOnce, signature: cause.message };
  }
  const error = new CodedError('WORKER_START_FAILED', `${label} did not start: ${text}`, { cause });
  if (known !== undefined) {
    const startsToBeSure = known.thrown === undefined ? mayPass : ofSetup(known.thrown.error);
    return { error, startsToBeSure, signature: error.message };
  }
  const isMissing = missingFile(exit, options) !== undefined;
  const startsToBeSure = isMissing ? atOnce : ofEnd(exit, options);
  return {
    error,
    startsToBeSure,
    signature: hasCrashed(exit) ? `${label} crashed` : error.message,
  };
}

/** Returns the flag of a process that exited without a message, and its file that is missing. */
function missingFile(
  { exitCode, error }: WorkerExit,
  { execArgv }: WorkerOptions,
): string | undefined {
  if (error !== undefined || exitCode === null || exitCode === 0) return undefined;
  return missingFileOf(execArgv);
}

function ofEnd(exit: WorkerExit, { maxHeapMb, execArgv }: WorkerOptions): number {
  const { error } = exit;
  if (error === undefined || exit.signal !== null || mayLackHeap(exit)) {
    return ofExit(exit, maxHeapMb > 0 || execArgv.length > 0);
  }
  // Only errors of the system come without an exit code; others were thrown in the worker.
  return exit.exitCode === null ? ofSystem(error) : ofUncaught(error);
}

/** Makes the failure for an error thrown by the start itself. */
export function failureOfStart(thrown: unknown): StartFailure {
  const remedy = prototypeRemedy(thrown);
  if (isOfPartition(thrown)) {
    return { error: thrown, startsToBeSure: atOnce, signature: thrown.message };
  }
  const isSure = thrown instanceof EntryMissingError || remedy !== undefined;
  const startsToBeSure = isSure ? atOnce : ofSystem(thrown);
  if (thrown instanceof CodedError && thrown.code === 'WORKER_START_FAILED') {
    return { error: thrown, startsToBeSure, signature: thrown.message };
  }
  const why = `${messageOf(thrown)}${permissionRemedy(thrown)}`;
  const text = `no worker could be started: ${why}${remedy === undefined ? '' : `: ${remedy}`}`;
  const error = new CodedError('WORKER_START_FAILED', text, { cause: thrown });
  return { error, startsToBeSure, signature: error.message };
}

/** Advice under `--permission`; empty for other errors. */
function permissionRemedy(thrown: unknown): string {
  const { code, permission } = Object(thrown);
  if (code !== 'ERR_ACCESS_DENIED') return '';
  return permission === 'WorkerThreads'
    ? ' (start this program with --allow-worker)'
    : " (start this program with --allow-child-process, or with --allow-worker and give the pool worker: 'thread')";
}

/** Certainty of an error of the system, or of one that the program of a worker threw in it. */
function ofSystem(error: unknown): number {
  const codes = codesOf(error);
  const hasOne = (wanted: ReadonlySet<unknown>): boolean => codes.some((code) => wanted.has(code));
  if (hasOne(passingCodes)) return mayPass;
  if (hasOne(lastingInWorkerCodes)) return atOnce;
  return hasOne(lastingCodes) ? atOnce : mayPass;
}

/**
 * Certainty of an error of a preloaded module, as by --import, or of an uncaught one that a set-up began.
 */
function ofUncaught(error: unknown): number {
  const codes = codesOf(error);
  if (codes.some((code) => passingCodes.has(code))) return mayPass;
  return codes.some((code) => lastingInWorkerCodes.has(code)) ? atOnce : secondTime;
}

/**
 * Certainty of a set-up error: it may wait for a database; a module that cannot be loaded, or a mistake in
 * the program, stays.
 */
function ofSetup(error: unknown): number {
  const codes = codesOf(error);
  if (codes.some((code) => passingCodes.has(code))) return mayPass;
  if (codes.some((code) => lastingInWorkerCodes.has(code))) return atOnce;
  if (hasCode(error, 'TRANSFER_IMPORT_FAILED')) return secondTime;
  if (codes.some((code) => typeof code === 'string' && code.startsWith('TRANSFER_'))) return atOnce;
  return isMistake(error) ? secondTime : mayPass;
}

/** True: a mistake in the program. A `TypeError` with a cause has another reason: `fetch failed`. */
function isMistake(error: unknown): boolean {
  if (error instanceof SyntaxError || error instanceof ReferenceError) return true;
  return error instanceof TypeError && error.cause === undefined;
}

function ofExit(exit: WorkerExit, hasOwnLimits: boolean): number {
  const { exitCode, signal } = exit;
  if (exitCode === wrongFlagExitCode) return atOnce;
  if (hasCrashed(exit)) return hasOwnLimits ? thirdTime : mayPass;
  return signal !== null || killedExitCodes.has(exitCode) ? mayPass : thirdTime;
}

/** True: a crash. V8 without heap ends by one signal now, and by another the next time. */
function hasCrashed(exit: WorkerExit): boolean {
  return mayLackHeap(exit) || isCrash(exit.signal) || isCrash(exit.exitCode);
}

/** Returns the codes of the error and of its causes, the outermost first. */
function codesOf(error: unknown): unknown[] {
  const codes: unknown[] = [];
  let each = error;
  while (each instanceof Error && codes.length < 8) {
    codes.push('code' in each ? each.code : undefined);
    each = each.cause;
  }
  return codes;
}

function describeEarlyExit(exit: WorkerExit, options: WorkerOptions): string {
  const { execArgv, maxHeapMb } = options;
  const text = `it ended first, ${describeExit(exit)}`;
  if (maxHeapMb > 0 && isCrash(exit.signal)) {
    return `${text}: a heap of ${maxHeapMb} MiB may be too small to start with, raise maxHeapMb`;
  }
  const missing = missingFile(exit, options);
  if (missing !== undefined) return `${text}: ${missing} is not there, correct execArgv`;
  if (exit.exitCode !== wrongFlagExitCode) return text;
  const flags = execArgv.length === 0 ? '' : `execArgv (${execArgv.join(' ')}) and `;
  return `${text}, as Node does for unknown flags: check ${flags}NODE_OPTIONS`;
}
