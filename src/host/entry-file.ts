// Where the program is that runs inside hosts: a file of its own, beside the file that this code is
// in. Where somebody has bundled manycore into a program, there is none.

import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { workerData } from 'node:worker_threads';
import { CodedError } from '../errors.js';
import { hasPreloads } from './flags.js';

const entryUrl = new URL('./entry.js', import.meta.url);
const sharedEntryUrl = new URL('./shared-entry.js', import.meta.url);
/** A bundle may itself be called so: started as a host it would start hosts without end. */
const isThisFile = entryUrl.href === import.meta.url;
/** So may the program beside a bundle's chunks: it has got a host's ticket, which a host takes away. */
const hasTicketOfHost = (): boolean =>
  process.argv[2]?.startsWith('{"hostId":') === true ||
  ['hostId', 'parentThread'].every((key) => Object.hasOwn(Object(workerData), key));
let isKnownToExist = false;

/** `HOST_START_FAILED`: no host can be started here, now or later. */
export class EntryMissingError extends CodedError {}

/** The path of `entry.ts`, compiled. Throws an `EntryMissingError` when it is not there, or must not be started. */
export function entryFile(): string {
  // By its text: Node takes no URL for one where a program has added `path` to `Object.prototype`.
  const path = fileURLToPath(entryUrl.href);
  isKnownToExist ||= !isThisFile && !hasTicketOfHost() && existsSync(path);
  if (isKnownToExist) return path;
  if (!isThisFile && hasTicketOfHost() && hasPreloads()) {
    throw new EntryMissingError(
      'HOST_START_FAILED',
      'a module that --import, -r or NODE_OPTIONS loads starts tasks, and a host that starts has loaded it too: ' +
        "start them in the program's own file, or in a module that it imports",
    );
  }
  throw new EntryMissingError(
    'HOST_START_FAILED',
    `manycore's host program ${path} is not beside its library: was manycore ` +
      'bundled into the program? Leave it out (esbuild: --external:manycore)',
  );
}

/** The URL of `shared-entry.ts`, which lies beside it. */
export function sharedEntryFile(): URL {
  entryFile();
  return sharedEntryUrl;
}
