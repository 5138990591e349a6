// `manycore sandbox FILE [ARGS]`: runs a program whose code is not trusted, as `node FILE ARGS` does, in a sandbox.

import { resolve } from 'node:path';
import { CodedError } from '../../../errors.js';
import { passOutput, runInSandbox, type SandboxOptions } from '../../../worker/index.js';
import { programFile } from '../run/run.js';

export interface SandboxFlags
  extends Pick<
    SandboxOptions,
    'network' | 'memoryMb' | 'maxProcesses' | 'cpuPercent' | 'fileMb' | 'allow'
  > {
  readonly read?: readonly string[];
  readonly write?: readonly string[];
  /** Each NAME=VALUE. */
  readonly env?: readonly string[];
}

/**
 * Runs the program; resolves with its exit code. Throws `CLI_FILE_NOT_FOUND`, `OPTION_INVALID`,
 * `PARTITION_UNAVAILABLE`.
 */
export async function runSandboxed(
  file: string,
  args: readonly string[],
  { read = [], write = [], env = [], ...limits }: SandboxFlags,
): Promise<number> {
  const path = programFile(file);
  const { exitCode, limit } = await runInSandbox(
    path,
    args,
    {
      ...limits,
      kind: 'sandbox',
      read: read.map((each) => resolve(each)),
      write: write.map((each) => resolve(each)),
      env: Object.fromEntries(env.map(variable)),
    },
    passOutput,
  );
  if (limit !== undefined) console.error(`manycore: the sandbox was ended: ${limit.reason}`);
  return exitCode;
}

function variable(text: string): readonly [name: string, value: string] {
  const at = text.indexOf('=');
  if (at <= 0) throw new CodedError('OPTION_INVALID', `--env is "${text}": it must be NAME=VALUE`);
  return [text.slice(0, at), text.slice(at + 1)];
}
