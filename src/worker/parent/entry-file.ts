// Finds the program that runs inside workers: a separate file, beside the file of this code. It is missing
// when manycore was bundled into a program.

import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { workerData } from 'node:worker_threads';
import { CodedError } from '../../errors.js';
import { hasPreloads } from './flags.js';

const entryUrl = new URL('../inside/entry.js', import.meta.url);
const sharedEntryUrl = new URL('../inside/shared-entry.js', import.meta.url);
/** A bundle may have the same name: started as a worker it would start workers without end. */
const isThisFile = entryUrl.href === import.meta.url;
/** The program beside a bundle's chunks may have it, too: it has a worker's ticket, which a worker removes. */
const hasTicketOfWorker = (): boolean =>
  process.argv[2]?.startsWith('{"workerId":') === true ||
  ['workerId', 'parentThread'].every((key) => Object.hasOwn(Object(workerData), key));
let isKnownToExist = false;

/** `WORKER_START_FAILED`: no worker can be started here, now or later. */
export class EntryMissingError extends CodedError {}

/**
 * Returns the path of the compiled `entry.ts`. Throws an `EntryMissingError` when it is missing, or must
 * not be started.
 */
export function entryFile(): string {
  // As text: Node rejects the URL object when a program has added `path` to `Object.prototype`.
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

/** Returns the URL of `shared-entry.ts`, which is beside it. */
export function sharedEntryFile(): URL {
  entryFile();
  return sharedEntryUrl;
}
