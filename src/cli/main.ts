#!/usr/bin/env node
// The command: which subcommands there are and what flags they take. Each has a file of its own that
// does the work. A wrong command line is one sentence and exit code 2.

import { Command, CommanderError } from 'commander';
import { CodedError } from '../errors.js';
import { doctor } from './doctor.js';
import { runFile } from './run.js';
import { packageVersion } from './version.js';

const usageExitCode = 2;

function program(): Command {
  const root = new Command('manycore')
    .description('Use every core from Node.js, and keep the event loops responsive while you do')
    .version(packageVersion())
    .enablePositionalOptions()
    .exitOverride()
    .showHelpAfterError('(manycore --help shows what there is)');
  root
    .command('doctor')
    .description('what this machine allows, what is missing, and what that costs')
    .option('--json', 'print JSON')
    .action(async (options: { json?: boolean }) => {
      process.exitCode = await doctor(options.json === true, packageVersion());
    });
  root
    .command('run')
    .description('run a program with its hosts already starting')
    .argument('<file>', 'the program')
    .argument('[args...]', 'its arguments')
    .passThroughOptions()
    .allowUnknownOption()
    .action((file: string, args: string[]) => runFile(file, args));
  return root;
}

try {
  await program().parseAsync();
} catch (error) {
  if (error instanceof CommanderError) {
    process.exitCode = error.exitCode === 0 ? 0 : usageExitCode; // commander has printed it
  } else if (error instanceof CodedError) {
    console.error(`manycore: ${error.message} (${error.code})`);
    process.exitCode = usageExitCode;
  } else {
    throw error;
  }
}
