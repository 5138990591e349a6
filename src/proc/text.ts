// Reads files and folders of /proc. A process may end between two reads: nothing here throws.

import { readdirSync, readFileSync } from 'node:fs';

/** The text of a file; `undefined` when it is missing or may not be read. */
export function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return undefined;
  }
}

/** The text of a file; empty when it is missing or may not be read. */
export function textOf(path: string): string {
  return readText(path) ?? '';
}

export function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
