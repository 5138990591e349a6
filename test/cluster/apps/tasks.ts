// What durable tasks may call by its name.

import { appendFileSync, existsSync } from 'node:fs';

export function double(n: number): number {
  return n * 2;
}

/** Leaves a line in `file`, and goes on until there is `file.go`. */
export async function untilGo(file: string): Promise<string> {
  appendFileSync(file, 'began\n');
  while (!existsSync(`${file}.go`)) await new Promise((resolve) => setTimeout(resolve, 20));
  return 'done';
}

/** Leaves a line in `file` for each time that it was called. */
export function note(file: string, line: string): string {
  appendFileSync(file, `${line}\n`);
  return line;
}
