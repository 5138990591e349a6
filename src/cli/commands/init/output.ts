// Output of `manycore init`: a file on stdout, or written.

import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { CodedError } from '../../../errors.js';
import { messageOf } from '../../../lib/index.js';

export interface File {
  readonly name: string;
  readonly text: string;
  /** Commands that make use of it. */
  readonly next: readonly string[];
}

/** Prints the file, or writes it and prints how to use it. Throws `OPTION_INVALID`: it exists, or cannot be written. */
export function output({ name, text, next }: File, isWritten: boolean): void {
  if (!isWritten) {
    process.stdout.write(text);
    return;
  }
  try {
    writeFileSync(name, text, { flag: 'wx' });
  } catch (cause) {
    const message =
      Object(cause).code === 'EEXIST'
        ? `there is a file ${resolve(name)}: remove it first, or leave out --write`
        : `${name} cannot be written: ${messageOf(cause)}`;
    throw new CodedError('OPTION_INVALID', message, { cause });
  }
  console.log([`${name} is written. Then:`, ...next.map((line) => `  ${line}`)].join('\n'));
}
