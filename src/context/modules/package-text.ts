// The `package.json` of a folder, and the one that applies to the files in it.
// Not here: reading its contents.

import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The text of `package.json` in `folder`; `undefined`: there is none. */
export function packageTextIn(folder: string): string | undefined {
  try {
    return readFileSync(join(folder, 'package.json'), 'utf8');
  } catch {
    return undefined;
  }
}

/** The text of `package.json` in `folder`, or else in the nearest folder above. */
export function packageTextAround(folder: string): string | undefined {
  const found = packageTextIn(folder);
  return found === undefined && folder !== dirname(folder)
    ? packageTextAround(dirname(folder))
    : found;
}
