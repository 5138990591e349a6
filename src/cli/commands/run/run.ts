// `manycore run FILE [ARGS]`: runs the program as `node FILE ARGS` does, in this process, and starts the
// workers of the default pool before its first call.

import { existsSync, realpathSync, statSync } from 'node:fs';
import { runMain } from 'node:module';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { blockingThreads, setBlockingThreads } from '../../../blocking-pool/index.js';
import { CodedError } from '../../../errors.js';
import { warm } from '../../../pool/index.js';
import { isLikeUnit } from '../../../units/index.js';
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
  hintAtUnit(path, file);
  runMain();
}

/** A program that runs longer has done something, in ms. */
const soonMs = 10_000;

/** Prints a hint where the program ends soon, in silence, and exports what could be a unit. */
function hintAtUnit(path: string, file: string): void {
  const beganAtMs = performance.now();
  process.once('beforeExit', async (code) => {
    const isSoon = performance.now() - beganAtMs <= soonMs;
    // It is unknown of a file, and then taken as output.
    if (code !== 0 || !isSoon || process.stdout.bytesWritten !== 0) return;
    const exports: unknown = await import(pathToFileURL(realpathSync(path)).href).catch(() => {});
    if (!isLikeUnit(exports)) return;
    const text = `${file} has ended, and nothing has used what it exports`;
    console.error(`manycore: ${text}: manycore run --instances 1 ${file} runs it as a unit`);
  });
}

/**
 * Sets the size of libuv's pool, which libuv reads at the first use of the pool. Node 20 has used it by now,
 * for loading modules: there the variable must be set before Node starts.
 */
function sizeBlockingPool(): void {
  setBlockingThreads(process.env, blockingThreads(grantedCores().count, 1));
}
