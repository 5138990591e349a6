// A file that is written whole, or stays as it was: the text goes beside it first, and takes its place
// when all of it is there. Not so what is no plain file: a device, a pipe, what a shell put behind
// /dev/stdout. Those are written into.

import { existsSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';

/** A link stays, and what it points to is replaced. Throws what the file system says. */
export function replaceFile(path: string, text: string): void {
  const known = statSync(path, { throwIfNoEntry: false });
  const isOpenElsewhere = /^\/(dev|proc)\//.test(resolve(path));
  if (isOpenElsewhere || (known !== undefined && !known.isFile())) {
    writeFileSync(path, text);
    return;
  }
  const file = existsSync(path) ? realpathSync(path) : resolve(path);
  const next = `${file}.${process.pid}.new`;
  try {
    writeFileSync(next, text, known === undefined ? {} : { mode: known.mode });
    renameSync(next, file);
  } catch (error) {
    rmSync(next, { force: true });
    throw error;
  }
}
