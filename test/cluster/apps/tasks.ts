// What durable tasks may call by its name.

import { appendFileSync } from 'node:fs';

export function double(n: number): number {
  return n * 2;
}

/** Leaves a line in `file` for each time that it was called. */
export function note(file: string, line: string): string {
  appendFileSync(file, `${line}\n`);
  return line;
}
