// Where a program threw that was to be served.

import { CodedError, errorCodes } from '../errors.js';

/**
 * Of what a program has thrown when it was started; not of what is said about it.
 * @internal
 */
export function programStack(error: unknown): string | undefined {
  if (!(error instanceof CodedError) || !saysCause.has(error.code)) return undefined;
  const { cause } = error;
  const isOurs = 'code' in Object(cause) && Object.keys(errorCodes).includes(Object(cause).code);
  return cause instanceof Error && !isOurs ? cause.stack : undefined;
}

const saysCause: ReadonlySet<string> = new Set(['SERVE_START_FAILED', 'SERVE_CONTROL_FAILED']);
