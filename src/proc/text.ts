// Files and folders of /proc. What they are about may end between two reads: nobody throws.

import { readdirSync, readFileSync } from 'node:fs';

/** `undefined` for what is not there, or not ours to see. */
export function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return undefined;
  }
}

/** The same, empty for what is not there. */
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
