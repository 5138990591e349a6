// The `package.json` of a folder, and the one that holds for the files in it. Not here: what is read from it.

import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The text of the one in `folder`; `undefined`: there is none. */
export function packageTextIn(folder: string): string | undefined {
  try {
    return readFileSync(join(folder, 'package.json'), 'utf8');
  } catch {
    return undefined;
  }
}

/** The text of the one in `folder`, or else of the nearest above. */
export function packageTextAround(folder: string): string | undefined {
  const found = packageTextIn(folder);
  return found === undefined && folder !== dirname(folder)
    ? packageTextAround(dirname(folder))
    : found;
}
