// `manycore sandbox FILE [ARGS]`: runs a program whose code is not trusted, as `node FILE ARGS` does, in a sandbox or a
// virtual machine.

import { resolve } from 'node:path';
import { CodedError } from '../../../errors.js';
import {
  passOutput,
  runInPartition,
  type SandboxOptions,
  sandboxOptionNames,
  type VmOptions,
  vmOptionNames,
} from '../../../worker/index.js';
import { kebab } from '../../flag-values.js';
import { programFile } from '../run/run.js';

export interface SandboxFlags
  extends Pick<
      SandboxOptions,
      'network' | 'memoryMb' | 'maxProcesses' | 'cpuPercent' | 'fileMb' | 'outputMb' | 'allow'
    >,
    Pick<VmOptions, 'engine' | 'core'> {
  readonly kind?: 'sandbox' | 'vm';
  readonly kernel?: string;
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
  flags: SandboxFlags,
): Promise<number> {
  const path = programFile(file);
  const { exitCode, limit } = await runInPartition(path, args, optionsOf(flags), passOutput);
  if (limit !== undefined) {
    const what = flags.kind === 'vm' ? 'virtual machine' : 'sandbox';
    console.error(`manycore: the ${what} was ended: ${limit.reason}`);
  }
  return exitCode;
}

function optionsOf(flags: SandboxFlags): SandboxOptions | VmOptions {
  const { kind = 'sandbox', read = [], write = [], env = [], ...others } = flags;
  const names = kind === 'vm' ? vmOptionNames : sandboxOptionNames;
  const wrong = Object.keys(others).find((name) => !names.includes(name));
  if (wrong !== undefined) {
    const message = `--${kebab(wrong)} is no flag of --kind ${kind}: leave one of them out`;
    throw new CodedError('OPTION_INVALID', message);
  }
  const paths = {
    read: read.map((each) => resolve(each)),
    write: write.map((each) => resolve(each)),
    env: Object.fromEntries(env.map(variable)),
  };
  const { engine, core, kernel, network, maxProcesses, cpuPercent, ...both } = others;
  if (kind === 'sandbox') {
    return { ...both, ...paths, kind, network, maxProcesses, cpuPercent };
  }
  return { ...both, ...paths, kind, engine, core, kernel: kernel && resolve(kernel) };
}

function variable(text: string): readonly [name: string, value: string] {
  const at = text.indexOf('=');
  if (at <= 0) throw new CodedError('OPTION_INVALID', `--env is "${text}": it must be NAME=VALUE`);
  return [text.slice(0, at), text.slice(at + 1)];
}
