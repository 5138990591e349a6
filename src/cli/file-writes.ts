// Files that a command writes at its end: one that cannot be written keeps neither the others nor what is
// printed from it. What was found in minutes is not lost because a disk is full.

import { CodedError } from '../errors.js';

export class FileWrites {
  readonly #failures: CodedError[] = [];

  /** Whether it was written. Throws what is no error of ours. */
  do(write: () => void): boolean {
    try {
      write();
      return true;
    } catch (error) {
      if (!(error instanceof CodedError)) throw error;
      this.#failures.push(error);
      return false;
    }
  }

  /** Says on standard error what could not be written; whether there is such. */
  printFailures(): boolean {
    for (const { message, code } of this.#failures) console.error(`manycore: ${message} (${code})`);
    return this.#failures.length > 0;
  }
}
