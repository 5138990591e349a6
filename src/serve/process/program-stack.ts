// Stack of a served program's error.

import { CodedError, errorCodes } from '../../errors.js';

/** Returns the stack of the error that a program threw at its start, not of the error that reports it. */
export function programStack(error: unknown): string | undefined {
  if (!(error instanceof CodedError)) return undefined;
  const { cause, code } = error;
  if (code === 'SERVE_CONTROL_FAILED') return programStack(cause); // another server's start
  if (code !== 'SERVE_START_FAILED') return undefined;
  const isOurs = 'code' in Object(cause) && Object.keys(errorCodes).includes(Object(cause).code);
  return cause instanceof Error && !isOurs ? cause.stack : undefined;
}
