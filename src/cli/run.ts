// `manycore run FILE [ARGS]`: the program as `node FILE ARGS` would run it, in this process, with the
// workers of the default pool started ahead of its first call.

import { existsSync, statSync } from 'node:fs';
import { runMain } from 'node:module';
import { resolve } from 'node:path';
import { blockingThreads, setBlockingThreads } from '../blocking-pool/index.js';
import { CodedError } from '../errors.js';
import { warm } from '../pool/index.js';
import { grantedCores } from '../worker/index.js';

/** Throws `CLI_FILE_NOT_FOUND`. What the program throws ends the process as it does under `node`. */
export function runFile(file: string, args: readonly string[]): void {
  const path = resolve(file);
  if (!existsSync(path) || !statSync(path).isFile()) {
    throw new CodedError('CLI_FILE_NOT_FOUND', `there is no file ${path}: give the program to run`);
  }
  sizeBlockingPool();
  // A pool that cannot start says so at the program's first call, not here.
  warm().catch(() => {});
  process.argv.splice(1, process.argv.length - 1, path, ...args);
  runMain();
}

/**
 * libuv reads its size when the pool is first used, which on Node 20 Node itself has done by now: it loads
 * modules so. There the environment has to say it before Node starts.
 */
function sizeBlockingPool(): void {
  setBlockingThreads(process.env, blockingThreads(grantedCores().count, 1));
}
