#!/usr/bin/env node
// The command: which subcommands there are and what flags they take. Each has a file of its own that
// does the work. A wrong command line is one sentence and exit code 2. The flags of servers and of tune
// are many, and in serve-flags.ts and tune-flags.ts.

import { Command, CommanderError, Option } from 'commander';
import { CodedError } from '../errors.js';
import { packageVersion } from '../internal/index.js';
import { programStack } from '../serve/index.js';
import { traceMethods } from '../trace/index.js';
import { addClusterFlags } from './cluster-flags.js';
import type { DashboardFlags } from './dashboard.js';
import { type DoctorOptions, doctor } from './doctor.js';
import { wholeNumber } from './flag-values.js';
import { handleOutputErrors, ignoreOutputErrors } from './output.js';
import { runFile } from './run.js';
import { hasUnitFlags, runUnit, takeUnitFlags } from './run-unit.js';
import { addServe, addServerCommands } from './serve-flags.js';
import type { TopFlags } from './top.js';
import { type TraceFlags, traceProgram } from './trace.js';
import { callGroups } from './trace-report.js';
import { addTuneCommand } from './tune-flags.js';
import { runWorker, type WorkerFlags } from './worker.js';

const usageExitCode = 2;
/** What they run goes on whatever becomes of its output. */
const longRunning = ['run', 'serve', 'worker'];

function program(): Command {
  const root = new Command('manycore')
    .description('Use every core from Node.js, and keep the event loops responsive while you do')
    .version(packageVersion())
    .enablePositionalOptions()
    .exitOverride()
    .hook('preAction', (_, command) => {
      if (longRunning.includes(command.name())) ignoreOutputErrors();
    })
    .configureOutput({ outputError: (text, write) => write(coded(text)) })
    .showHelpAfterError('(manycore --help shows what there is)')
    .addHelpText('after', '\nmanycore COMMAND --help shows the flags of a command.');
  root.commandsGroup('Run programs:');
  addRun(root);
  addServe(root);
  addServerCommands(root);
  addWorker(root);
  root.commandsGroup('See and mend:');
  addTop(root);
  addDashboard(root);
  addDoctor(root);
  addTrace(root);
  addTuneCommand(root);
  return root;
}

function addRun(root: Command): void {
  const run = root
    .command('run')
    .description('run a program with its workers already starting, or a unit on event loops')
    .argument('<file>', 'the program, or with --instances the module of a unit')
    .argument('[args...]', 'arguments of the program, all of them after --')
    .option('--instances <count>', 'it is a unit: so many instances, spread over the loops')
    .option('--processes <count>', 'for a unit: processes that its loops are in')
    .option('--loops <count>', 'for a unit: event loops in each process')
    .option('--name <text>', 'of the unit')
    .option('--on <where>', 'loop, or blocking: each instance in a thread of its own')
    .option('--config <json>', 'what its instances get as config')
    .option('--cluster <url>', 'put the bus on NATS: nats://HOST:PORT, or several with commas')
    .passThroughOptions()
    .allowUnknownOption()
    .action(runProgram);
  addClusterFlags(run);
}

function addWorker(root: Command): void {
  const worker = root
    .command('worker')
    .description('lend workers of this machine to the pools of a cluster')
    .requiredOption('--nats <url>', 'its NATS server: nats://HOST:PORT, or several with commas')
    .option('--workers <count>', 'so many (default: as many as cores)', wholeNumber)
    .option('--durable', 'take durable tasks, too, which JetStream keeps')
    .option('--module <file...>', 'in a cluster without a secret: whose exports tasks may call')
    .option(
      '--drain-timeout-ms <ms>',
      'how long tasks may take once it is to end (default: 30000)',
      wholeNumber,
    )
    .action(({ nats, ...flags }: WorkerFlags & { readonly nats: string }) =>
      runWorker(nats, flags),
    );
  addClusterFlags(worker);
}

function addTop(root: Command): void {
  root
    .command('top')
    .description('what the programs do that run and use manycore, in this terminal')
    .argument('[pid]', 'of one program', wholeNumber)
    .option('--once', 'print one table, and end')
    .option('--json', 'print JSON, once')
    .showHelpAfterError('(manycore top --help shows the flags; manycore dashboard is a web page)')
    .action(async (pid: number | undefined, flags: TopFlags) => {
      const { showPrograms } = await import('./top.js');
      await showPrograms(pid, flags);
    });
}

function addDashboard(root: Command): void {
  root
    .command('dashboard')
    .description('the same as a live page for your browser')
    .option(
      '--port <port>',
      'where it listens (default: 7420, or any where that is taken)',
      wholeNumber,
    )
    .option('--host <address>', 'and on which address (default: 127.0.0.1, this machine alone)')
    .action(async (flags: DashboardFlags) => {
      const { showDashboard } = await import('./dashboard.js');
      await showDashboard(flags);
    });
}

const doctorExitCodes = `
Exit code:
  0  all is well, or could be better (ADVICE)
  1  something does not work (MISSING) or costs something now (PROBLEM)
  2  the program cannot be looked into`;

function addDoctor(root: Command): void {
  root
    .command('doctor')
    .description('what is wrong here or with a program that runs, and what mends it')
    .argument(
      '[pid]',
      'of one program of Node (default: the machine and all your servers)',
      wholeNumber,
    )
    .option('--json', 'print the findings as JSON')
    .addHelpText('after', doctorExitCodes)
    .action(async (pid: number | undefined, options: DoctorOptions) => {
      process.exitCode = await doctor(pid, options);
    });
}

function addTrace(root: Command): void {
  root
    .command('trace')
    .description('what a program asks of the kernel: system calls by name, thread and role')
    .argument('<target...>', 'a process number, or after -- a command to start')
    .option('--seconds <count>', 'so long (default: 5; a command: until it ends)', wholeNumber)
    .addOption(
      new Option('--method <name>', 'how (default: the best that works)').choices(traceMethods),
    )
    .addOption(
      new Option('--by <what>', 'what has a table of calls of its own (default: program)')
        .choices(callGroups)
        .conflicts('json'),
    )
    .option('--json', 'print JSON: all of them')
    .option('-o, --output <file>', 'write the report to a file')
    .option('--folded <file>', 'write times as folded stacks, for a flame graph')
    .option('--folded-counts <file>', 'and counts of calls')
    .showHelpAfterError('(manycore trace --help shows the flags; a command stands after --)')
    .action((target: string[], flags: TraceFlags) => traceProgram(target, flags));
}

/** Flags of a unit stand before or behind its file; a program has its own behind it. */
async function runProgram(
  file: string,
  args: readonly string[],
  options: Readonly<Record<string, string>>,
): Promise<void> {
  const before = Object.entries(options).map(([name, value]) => `--${kebab(name)}=${value}`);
  const all = [...before, ...args];
  if (!hasUnitFlags(all)) {
    if (before.length > 0) throw notForProgram(before);
    runFile(file, args);
    return;
  }
  const { flags, rest } = takeUnitFlags(all);
  if (rest.length === 0) await runUnit(file, flags);
  else throw new CodedError('OPTION_INVALID', `a unit gets --config, and no "${rest.join(' ')}"`);
}

function notForProgram(options: readonly string[]): CodedError {
  const names = options.map((option) => option.replace(/=.*/s, '')).join(', ');
  const way = 'give --instances too, or write what the program is to get behind its file';
  return new CodedError('OPTION_INVALID', `${names} is for units: ${way}`);
}

/** `clusterName` → `cluster-name`. */
function kebab(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** What commander says of a wrong command line, as all else is said. */
function coded(text: string): string {
  return text.replace(/^error: (.*)/, 'manycore: $1 (OPTION_INVALID)');
}

handleOutputErrors();
try {
  await program().parseAsync();
} catch (error) {
  if (error instanceof CommanderError) {
    process.exitCode = error.exitCode === 0 ? 0 : usageExitCode; // commander has printed it
  } else if (error instanceof CodedError) {
    const stack = programStack(error);
    if (stack !== undefined) console.error(`${stack}\n`);
    console.error(`manycore: ${error.message} (${error.code})`);
    process.exitCode = usageExitCode;
  } else {
    throw error;
  }
}
