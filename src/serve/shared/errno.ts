// Error numbers of this system as libuv has them: negative, and others on each system.

import { getSystemErrorMap } from 'node:util';

/** Returns the number of a system's error, as `EADDRINUSE`. */
export function errnoOf(name: string): number {
  for (const [errno, [known]] of getSystemErrorMap()) if (known === name) return errno;
  throw new Error(`this system has no error ${name}`);
}
