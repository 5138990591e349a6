// A program of the user in a partition, with this process's input and output: `manycore sandbox`.

import { type SpawnOptions, spawn } from 'node:child_process';
import { Socket } from 'node:net';
import { dirname } from 'node:path';
import { defer, ownOf } from '../../lib/index.js';
import type { ReachedLimit } from '../types.js';
import { guestFailure, limitOf, refusalOf, textOf } from './ends.js';
import { nodeFiles, packageFilesAbove } from './files.js';
import { passInput } from './guest-input.js';
import { fillPartition, type SandboxOptions, type VmOptions } from './options.js';
import { CauseLine } from './own-output.js';
import { partitionStart } from './start-line.js';

export interface ProgramEnd {
  /** The code that a shell would have: 128 and the number of a signal that has ended it. */
  readonly exitCode: number;
  /** The limit that has ended it. */
  readonly limit: ReachedLimit | undefined;
}

/**
 * Runs the module in `file` with `args`; it can read the folder of that file. SIGINT and SIGTERM end it. Throws
 * `OPTION_INVALID`, `PARTITION_UNAVAILABLE`.
 */
export async function runInPartition(
  file: string,
  args: readonly string[],
  options: SandboxOptions | VmOptions,
  onOutput: (text: string, stream: 'stdout' | 'stderr') => void,
): Promise<ProgramEnd> {
  const folder = dirname(file);
  const partition = fillPartition(options);
  const own = [folder, ...packageFilesAbove(folder)].map((path) => ({ from: path, to: path }));
  const { line, stdio, inputFd, leave } = partitionStart(partition, {
    bindings: nodeFiles(),
    shown: own,
    words: [file, ...args],
    maxHeapMb: 0,
    channel: undefined,
  });
  const [program = '', ...words] = line;
  const spawnOptions: SpawnOptions = { stdio: [...stdio], env: {} };
  const child = spawn(program, words, ownOf(spawnOptions));
  const input = inputFd === undefined ? undefined : child.stdio[inputFd];
  const endInput = input instanceof Socket ? passInput(process.stdin, input) : () => {};
  const status = textOf(child.stdio.at(-1));
  const cause = new CauseLine();
  child.stdout?.setEncoding('utf8').on('data', (text: string) => onOutput(text, 'stdout'));
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    cause.add(text);
    onOutput(text, 'stderr');
  });
  const end = (): void => void child.kill('SIGTERM');
  process.on('SIGINT', end).on('SIGTERM', end);
  const { promise, resolve, reject } = defer<number>();
  child.once('error', reject);
  child.once('close', (code) => resolve(code ?? 1));
  try {
    const exitCode = await promise;
    const refusal = refusalOf(exitCode, cause.text);
    const limit = limitOf(await status, exitCode, partition, cause, 0);
    if (partition.kind === 'vm' && input instanceof Socket && input.bytesRead === 0) {
      const exit = { exitCode, signal: null, error: refusal, limit, lastLine: cause.text };
      throw guestFailure(partition, exit, undefined).error; // it has not requested its input
    }
    if (refusal !== undefined) throw refusal;
    return { exitCode, limit };
  } finally {
    process.off('SIGINT', end).off('SIGTERM', end);
    endInput();
    leave();
  }
}
