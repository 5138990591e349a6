// `manycore run FILE [ARGS]`: runs the program as `node FILE ARGS` does, in this process, and starts the
// workers of the default pool before its first call.

import { existsSync, statSync } from 'node:fs';
import { runMain } from 'node:module';
import { resolve } from 'node:path';
import { blockingThreads, setBlockingThreads } from '../../../blocking-pool/index.js';
import { CodedError } from '../../../errors.js';
import { warm } from '../../../pool/index.js';
import { grantedCores } from '../../../worker/index.js';

/** Returns the path of a program. Throws `CLI_FILE_NOT_FOUND`. */
export function programFile(file: string): string {
  const path = resolve(file);
  if (existsSync(path) && statSync(path).isFile()) return path;
  throw new CodedError('CLI_FILE_NOT_FOUND', `there is no file ${path}: give the program to run`);
}

/** Runs the program. Throws `CLI_FILE_NOT_FOUND`. Errors of the program end the process as under `node`. */
export function runFile(file: string, args: readonly string[]): void {
  const path = programFile(file);
  sizeBlockingPool();
  // A pool that cannot start rejects the program's first call, not this.
  warm().catch(() => {});
  process.argv.splice(1, process.argv.length - 1, path, ...args);
  runMain();
}

/**
 * Sets the size of libuv's pool, which libuv reads at the first use of the pool. Node 20 has used it by now,
 * for loading modules: there the variable must be set before Node starts.
 */
function sizeBlockingPool(): void {
  setBlockingThreads(process.env, blockingThreads(grantedCores().count, 1));
}
