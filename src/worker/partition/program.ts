// A program of the user in a partition, with this process's input and output: `manycore sandbox`.

import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { Socket } from 'node:net';
import { dirname } from 'node:path';
import { defer, ownOf } from '../../lib/index.js';
import type { ReachedLimit } from '../types.js';
import { guestFailure, limitOf, refusalOf, textOf } from './ends.js';
import { nodeFiles, packageFilesAbove } from './files.js';
import { passInput } from './guest-input.js';
import {
  type FilledPartition,
  fillPartition,
  type SandboxOptions,
  type VmOptions,
} from './options.js';
import { OutputLimit } from './output-limit.js';
import { type NodeProgram, partitionStart } from './start-line.js';

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
  const partition = fillPartition(options);
  const { line, stdio, inputFd, leave } = partitionStart(partition, programOf(file, args));
  const [program = '', ...words] = line;
  const spawnOptions: SpawnOptions = { stdio: [...stdio], env: {} };
  const child = spawn(program, words, ownOf(spawnOptions));
  const input = inputFd === undefined ? undefined : child.stdio[inputFd];
  const endInput = input instanceof Socket ? passInput(process.stdin, input) : () => {};
  const end = (): void => void child.kill('SIGTERM');
  const output = new OutputLimit(partition.outputMb, end);
  readOutput(child, output, onOutput);
  process.on('SIGINT', end).on('SIGTERM', end);
  try {
    return await endOf(child, partition, output, input);
  } finally {
    process.off('SIGINT', end).off('SIGTERM', end);
    endInput();
    leave();
  }
}

function programOf(file: string, args: readonly string[]): NodeProgram {
  const folder = dirname(file);
  const shown = [folder, ...packageFilesAbove(folder)].map((path) => ({ from: path, to: path }));
  const words = [file, ...args];
  return { bindings: nodeFiles(), shown, words, maxHeapMb: 0, channel: undefined };
}

function readOutput(
  { stdout, stderr }: ChildProcess,
  output: OutputLimit,
  onOutput: (text: string, stream: 'stdout' | 'stderr') => void,
): void {
  const streams = { stdout, stderr };
  const listener = output.around([stdout, stderr], (text, { stream }) => onOutput(text, stream));
  for (const stream of ['stdout', 'stderr'] as const) {
    streams[stream]?.setEncoding('utf8').on('data', (text: string) => listener(text, { stream }));
  }
}

/** Waits for the end of the program. `input`: that of a guest, which requests it when its program begins. */
async function endOf(
  child: ChildProcess,
  partition: FilledPartition,
  output: OutputLimit,
  input: unknown,
): Promise<ProgramEnd> {
  const status = textOf(child.stdio.at(-1));
  const { promise, resolve, reject } = defer<number>();
  child.once('error', reject);
  child.once('close', (code) => resolve(code ?? 1));
  const exitCode = await promise;
  const { cause } = output;
  const refusal = refusalOf(exitCode, cause.text);
  const limit = output.reached ?? limitOf(await status, exitCode, partition, cause, 0);
  if (partition.kind === 'vm' && input instanceof Socket && input.bytesRead === 0) {
    const exit = { exitCode, signal: null, error: refusal, limit, lastLine: cause.text };
    throw guestFailure(partition, exit, undefined).error;
  }
  if (refusal !== undefined) throw refusal;
  return { exitCode, limit };
}
