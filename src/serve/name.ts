// Names of served apps: for the commands that take one, process titles and labels.

import { basename, dirname, extname } from 'node:path';
import { invalid } from '../lib/index.js';

/** Not all digits, which would be a pid. */
const validName = /^(?!\d+$)[\w.@-]{1,64}$/;
/** Files and folders that many programs have: their folder says more. */
const commonNames: ReadonlySet<string> = new Set([
  ...['index', 'main', 'server', 'app', 'start'],
  ...['src', 'dist', 'build', 'lib', 'bin', 'out', '.output'],
]);
const fallback = 'app';

/** Throws `OPTION_INVALID`. */
export function checkName(option: string, name: unknown): string {
  if (typeof name === 'string' && validName.test(name)) return name;
  throw invalid(option, name, 'a name of letters, digits, and _ . @ -, with a letter among them');
}

/** `shop` for /srv/shop/dist/server.js, and `worker` for /srv/shop/worker.js. */
export function nameOfProgram(path: string): string {
  let name = basename(path, extname(path));
  let folder = dirname(path);
  while (commonNames.has(name) && folder !== dirname(folder)) {
    name = basename(folder);
    folder = dirname(folder);
  }
  const plain = name.replace(/[^\w.@-]+/g, '-').slice(0, 64);
  return validName.test(plain) ? plain : fallback;
}
