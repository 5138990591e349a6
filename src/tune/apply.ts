// Runs a program in the configuration that was found, as if started by hand: in the foreground, with our
// streams, and with one copy of each signal that arrives here.

import { spawn } from 'node:child_process';
import { CodedError } from '../errors.js';
import { exitCodeOf } from '../lib/index.js';
import { startOn } from '../worker/index.js';
import type { TuneOptions } from './options.js';
import { launchOf, type Program, programOf } from './program/launch.js';
import type { Start } from './program/start.js';

const forwarded = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR2'] as const;

/**
 * Resolves with the exit code, in the convention of a shell. `needsForwarding`: true for signals that the
 * program receives only through us. Rejects with `OPTION_INVALID`, `NATIVE_MISSING`, `TUNE_PROGRAM_FAILED`,
 * and with errors of `startFor`.
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
