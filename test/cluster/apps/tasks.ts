// Exports that durable tasks call by name.

import { appendFileSync, existsSync } from 'node:fs';

export function double(n: number): number {
  return n * 2;
}

/** Appends a line to `file`, and waits until `file.go` exists. */
export async function untilGo(file: string): Promise<string> {
  appendFileSync(file, 'began\n');
  while (!existsSync(`${file}.go`)) await new Promise((resolve) => setTimeout(resolve, 20));
  return 'done';
}

/** Appends a line to `file` for each call. */
export function note(file: string, line: string): string {
  appendFileSync(file, `${line}\n`);
  return line;
}
