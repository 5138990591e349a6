// Files that a trace leaves: reports and folded stacks.

import { CodedError } from '../errors.js';
import { messageOf, replaceFile } from '../lib/index.js';

/** Writes a file whole, or leaves what was there as it was. Throws `TRACE_WRITE_FAILED`. */
export function writeTraceFile(path: string, text: string): void {
  try {
    replaceFile(path, text);
  } catch (error) {
    throw new CodedError(
      'TRACE_WRITE_FAILED',
      `${path} cannot be written: ${messageOf(error)}; make room there, or name another file`,
      { cause: error },
    );
  }
}
