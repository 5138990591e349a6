// Whatever was thrown as a text or an error: anybody may throw anything, also what has no text. Errors of
// another realm count: in the contexts of test runners Node's own are of the main one.

import { isNativeError } from 'node:util/types';

function isError(thrown: unknown): thrown is Error {
  return isNativeError(thrown) || thrown instanceof Error;
}

/** Never throws. */
export function messageOf(thrown: unknown): string {
  try {
    return String(isError(thrown) ? thrown.message : thrown);
  } catch {
    return 'a value that has no text';
  }
}

/** The thrown error, or a new error with the text of another thrown value. */
export function errorOf(thrown: unknown): Error {
  return isError(thrown) ? thrown : new Error(messageOf(thrown));
}
