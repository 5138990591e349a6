// Runs a program with what was found as if it had been started by hand: in the foreground, with our streams,
// and it gets once the signals that we get.

import { spawn } from 'node:child_process';
import { CodedError } from '../errors.js';
import { exitCodeOf } from '../internal/index.js';
import { startOn } from '../worker/index.js';
import { launchOf, type Program, programOf } from './launch.js';
import type { TuneOptions } from './options.js';
import type { Start } from './start.js';

const forwarded = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR2'] as const;

/**
 * Resolves with its exit code, as a shell has it. `needsForwarding`: whether the program hears a signal only
 * from us. Rejects with `OPTION_INVALID`, `NATIVE_MISSING`, `TUNE_PROGRAM_FAILED`, and with what `startFor`
 * throws.
 */
export async function runTuned(
  { command, serve = false, main }: Pick<TuneOptions, 'command' | 'serve' | 'main'>,
  startFor: (program: Program) => Start,
  needsForwarding: (signal: NodeJS.Signals) => boolean,
): Promise<number> {
  if (command.length === 0) {
    throw new CodedError('OPTION_INVALID', 'there is no program to run: give it behind --');
  }
  const program = programOf(command, { serve, main });
  const launch = launchOf(program, startFor(program));
  const [file = '', ...args] = launch.command;
  const env = { ...process.env, ...launch.env };
  const child = startOn(launch.cores, () => spawn(file, args, { stdio: 'inherit', env }));
  const forward = (signal: NodeJS.Signals): void => {
    if (needsForwarding(signal)) child.kill(signal);
  };
  for (const signal of forwarded) process.on(signal, forward);
  try {
    return await new Promise((resolve, reject) => {
      child.once('error', (cause) => {
        const message = `${file} cannot be started: ${cause.message}; give the program as a shell finds it`;
        reject(new CodedError('TUNE_PROGRAM_FAILED', message, { cause }));
      });
      child.once('exit', (code, signal) => resolve(exitCodeOf(code, signal)));
    });
  } finally {
    for (const signal of forwarded) process.off(signal, forward);
  }
}
