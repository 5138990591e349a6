// Files that a command writes at its end. A file that cannot be written prevents neither the other files nor
// the printed output: the result of minutes is not lost because a disk is full.

import { CodedError } from '../errors.js';

export class FileWrites {
  readonly #failures: CodedError[] = [];

  /** Runs `write`; true: it succeeded. Rethrows errors that are no `CodedError`. */
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

  /** Prints the failures on standard error; true: there were any. */
  printFailures(): boolean {
    for (const { message, code } of this.#failures) console.error(`manycore: ${message} (${code})`);
    return this.#failures.length > 0;
  }
}
