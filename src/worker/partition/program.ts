// A program of the user in a sandbox, with this process's input and output: `manycore sandbox`.

import { type SpawnOptions, spawn } from 'node:child_process';
import { dirname } from 'node:path';
import { defer, ownOf } from '../../lib/index.js';
import type { ReachedLimit } from '../types.js';
import { commandLine, heapMb } from './command-line.js';
import { limitOf, textOf } from './ends.js';
import { nodeFiles, packageFilesAbove } from './files.js';
import { fillSandbox, type SandboxOptions } from './options.js';

export interface ProgramEnd {
  /** The code that a shell would have: 128 and the number of a signal that has ended it. */
  readonly exitCode: number;
  /** The limit that has ended it. */
  readonly limit: ReachedLimit | undefined;
}

/** Descriptor of stderr: the program gets none behind it. */
const lastFd = 2;

/**
 * Runs the module in `file` with `args`; it can read the folder of that file. SIGINT and SIGTERM end it. Throws
 * `OPTION_INVALID`, `PARTITION_UNAVAILABLE`.
 */
export async function runInSandbox(
  file: string,
  args: readonly string[],
  options: SandboxOptions,
  onOutput: (text: string, stream: 'stdout' | 'stderr') => void,
): Promise<ProgramEnd> {
  const folder = dirname(file);
  const sandbox = fillSandbox(options);
  const own = [folder, ...packageFilesAbove(folder)].map((path) => ({ from: path, to: path }));
  const [program = '', ...words] = commandLine({
    sandbox,
    bindings: [...nodeFiles(), ...own],
    lastFd,
    command: [process.execPath, `--max-old-space-size=${heapMb(sandbox)}`, file, ...args],
  });
  const spawnOptions: SpawnOptions = {
    stdio: ['inherit', 'pipe', 'pipe', 'pipe'],
    env: {},
  };
  const child = spawn(program, words, ownOf(spawnOptions));
  const status = textOf(child.stdio.at(-1));
  child.stdout?.setEncoding('utf8').on('data', (text: string) => onOutput(text, 'stdout'));
  child.stderr?.setEncoding('utf8').on('data', (text: string) => onOutput(text, 'stderr'));
  const end = (): void => void child.kill('SIGTERM');
  process.on('SIGINT', end).on('SIGTERM', end);
  const { promise, resolve, reject } = defer<number>();
  child.once('error', reject);
  child.once('close', (code) => resolve(code ?? 1));
  try {
    const exitCode = await promise;
    return { exitCode, limit: limitOf(await status, exitCode, sandbox, '') };
  } finally {
    process.off('SIGINT', end).off('SIGTERM', end);
  }
}
