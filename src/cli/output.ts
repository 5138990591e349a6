// Errors of standard output, for all commands that print a result and exit. `console` ignores failed writes,
// and a failed write of commander ends Node with a stack. Here a full disk gives one sentence and exit code
// 2, and a closed pipe (`| head`) is silent. The command goes on meanwhile: it may have files to write. Not
// for programs that we run, and servers: they behave as under Node itself.

import { CodedError } from '../errors.js';
import { defer, messageOf } from '../lib/index.js';

const failedExitCode = 2;
const lost = defer<void>();
let isFull = false;

/** Resolves when standard output is lost. */
export const outputLost: Promise<void> = lost.promise;

/** Installs the handlers, until `ignoreOutputErrors`. */
export function handleOutputErrors(): void {
  process.stdout.on('error', onError);
  process.on('exit', onExit);
}

export function ignoreOutputErrors(): void {
  process.stdout.off('error', onError);
  process.off('exit', onExit);
}

function onError(cause: Error): void {
  const isClosed = Object(cause).code === 'EPIPE';
  lost.resolve();
  if (isClosed || isFull || Object(cause).code === 'ERR_STREAM_DESTROYED') return;
  isFull = true;
  const message = `standard output cannot be written: ${messageOf(cause)}; make room, or write elsewhere`;
  const error = new CodedError('CLI_OUTPUT_FAILED', message, { cause });
  console.error(`manycore: ${error.message} (${error.code})`);
}

function onExit(): void {
  if (isFull) process.exitCode = failedExitCode;
}
