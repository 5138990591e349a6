// Where the program is that runs inside workers: a file of its own, beside the file that this code is
// in. Where somebody has bundled manycore into a program, there is none.

import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { workerData } from 'node:worker_threads';
import { CodedError } from '../errors.js';
import { hasPreloads } from './flags.js';

const entryUrl = new URL('./entry.js', import.meta.url);
const sharedEntryUrl = new URL('./shared-entry.js', import.meta.url);
/** A bundle may itself be called so: started as a worker it would start workers without end. */
const isThisFile = entryUrl.href === import.meta.url;
/** So may the program beside a bundle's chunks: it has got a worker's ticket, which a worker takes away. */
const hasTicketOfWorker = (): boolean =>
  process.argv[2]?.startsWith('{"workerId":') === true ||
  ['workerId', 'parentThread'].every((key) => Object.hasOwn(Object(workerData), key));
let isKnownToExist = false;

/** `WORKER_START_FAILED`: no worker can be started here, now or later. */
export class EntryMissingError extends CodedError {}

/** The path of `entry.ts`, compiled. Throws an `EntryMissingError` when it is not there, or must not be started. */
export function entryFile(): string {
  // By its text: Node takes no URL for one where a program has added `path` to `Object.prototype`.
  const path = fileURLToPath(entryUrl.href);
  isKnownToExist ||= !isThisFile && !hasTicketOfWorker() && existsSync(path);
  if (isKnownToExist) return path;
  if (!isThisFile && hasTicketOfWorker() && hasPreloads()) {
    throw new EntryMissingError(
      'WORKER_START_FAILED',
      'a module that --import, -r or NODE_OPTIONS loads starts tasks, and a worker that starts has loaded it too: ' +
        "start them in the program's own file, or in a module that it imports",
    );
  }
  throw new EntryMissingError(
    'WORKER_START_FAILED',
    `manycore's worker program ${path} is not beside its library: was manycore ` +
      'bundled into the program? Leave it out (esbuild: --external:manycore)',
  );
}

/** The URL of `shared-entry.ts`, which lies beside it. */
export function sharedEntryFile(): URL {
  entryFile();
  return sharedEntryUrl;
}
