#!/usr/bin/env node
// The command `manycore`: its subcommands and their flags. Each subcommand has its own file for the work. A
// wrong command line gives one sentence and exit code 2. Flags of servers and of tune are in serve-flags.ts
// and tune-flags.ts.

import { Command, CommanderError, Option } from 'commander';
import { CodedError } from '../errors.js';
import { packageVersion } from '../lib/index.js';
import { programStack } from '../serve/index.js';
import { traceMethods } from '../syscalls/index.js';
import { unitStack } from '../units/index.js';
import { addClusterFlags } from './cluster-flags.js';
import type { DashboardFlags } from './commands/dashboard/dashboard.js';
import { type DoctorOptions, doctor } from './commands/doctor/doctor.js';
import { addInit } from './commands/init/init-flags.js';
import type { ProfileFlags } from './commands/profile/profile.js';
import { runFile } from './commands/run/run.js';
import { hasUnitFlags, runSeveral, runUnit, takeUnitFlags } from './commands/run/run-unit.js';
import { unitsOfFile, unitsOfFlags } from './commands/run/unit-list.js';
import type { SandboxFlags } from './commands/sandbox/sandbox.js';
import { addServe, addServerCommands } from './commands/serve/serve-flags.js';
import type { TopFlags } from './commands/top/top.js';
import { type TraceFlags, traceProgram } from './commands/trace/trace.js';
import { callGroups } from './commands/trace/trace-report.js';
import { addTuneCommand } from './commands/tune/tune-flags.js';
import { runWorker, type WorkerFlags } from './commands/worker/worker.js';
import { coreOrEach, kebab, wholeNumber } from './flag-values.js';
import { handleOutputErrors, ignoreOutputErrors } from './output.js';

const usageExitCode = 2;
/** Commands whose programs keep running when their output is lost. */
const longRunning = ['run', 'serve', 'worker'];

function program(): Command {
  const root = new Command('manycore')
    .description('Use every core from Node.js, and keep the event loops responsive while you do')
    .version(packageVersion(), '-v, --version')
    .addOption(new Option('-V').hideHelp())
    .enablePositionalOptions()
    .exitOverride()
    .hook('preAction', (_, command) => {
      if (longRunning.includes(command.name())) ignoreOutputErrors();
    })
    .configureOutput({ outputError: (text, write) => write(coded(text)) })
    .showHelpAfterError('(manycore --help shows what there is)')
    .addHelpText('after', '\nmanycore COMMAND --help shows the flags of a command.');
  root.on('option:V', () => {
    console.log(packageVersion());
    throw new CommanderError(0, 'commander.version', packageVersion());
  });
  root.commandsGroup('Run programs:');
  addRun(root);
  addServe(root);
  addServerCommands(root);
  addInit(root);
  addWorker(root);
  addSandbox(root);
  root.commandsGroup('Observe and tune:');
  addTop(root);
  addDashboard(root);
  addDoctor(root);
  addTrace(root);
  addProfile(root);
  addTuneCommand(root);
  return root;
}

function addRun(root: Command): void {
  const run = root
    .command('run')
    .description('run a program with its workers started ahead, or a unit on event loops')
    .argument(
      '[file]',
      'file of the program; with a flag of units the module of one; or a .json list of units',
    )
    .argument('[args...]', 'arguments of the program; after -- all of them')
    .option(
      '--instances <count>',
      'run FILE as a unit with this many instances, spread over the loops (default with another flag of units: 1)',
    )
    .option('-u, --unit <file:count>', 'run several units: once for each of them', collected)
    .option('--processes <count>', 'processes for the loops of a unit')
    .option('--loops <count>', 'event loops per process for a unit')
    .option('--name <text>', 'name of the unit (default: its class, function or file)')
    .option('--on <where>', 'where instances of the unit run: loop, or blocking (a thread each)')
    .option('--config <json>', 'config for the instances of the unit, as JSON')
    .option(
      '--cluster <url>',
      'connect the bus to NATS: nats://HOST:PORT, comma-separated; local: to the programs of this machine',
    )
    .passThroughOptions()
    .allowUnknownOption()
    .action(runProgram);
  addClusterFlags(run);
}

function addWorker(root: Command): void {
  const worker = root
    .command('worker')
    .description('lend workers of this machine to the pools of a cluster')
    .requiredOption('--nats <url>', 'NATS server of the cluster: nats://HOST:PORT, comma-separated')
    .option(
      '--workers <count>',
      'number of workers to lend (default: number of cores)',
      wholeNumber,
    )
    .option('--durable', 'also run durable tasks, which JetStream stores')
    .option(
      '--module <file...>',
      'modules whose exports tasks may call (for a cluster without a secret)',
    )
    .option(
      '--drain-timeout-ms <ms>',
      'time limit for running tasks at shutdown, in ms (default: 30000)',
      wholeNumber,
    )
    .action(({ nats, ...flags }: WorkerFlags & { readonly nats: string }) =>
      runWorker(nats, flags),
    );
  addClusterFlags(worker);
}

function addSandbox(root: Command): void {
  root
    .command('sandbox')
    .description('run a program whose code is not trusted')
    .argument('<file>', 'file of the program, which can read its folder and nothing else')
    .argument('[args...]', 'arguments of the program; after -- all of them')
    .addOption(
      new Option(
        '--kind <which>',
        'sandbox, or vm: a kernel of its own (default: sandbox)',
      ).choices(['sandbox', 'vm']),
    )
    .option('--read <path...>', 'files and folders that it may read')
    .option('--write <path...>', 'folders in which it may also write')
    .option('--env <name=value...>', 'variables of its environment (default: none)')
    .addOption(
      new Option(
        '--network <which>',
        'none, or that of this machine (default: none; not with vm)',
      ).choices(['none', 'host']),
    )
    .option('--memory-mb <count>', 'memory in MiB (default: 256, vm: 96)', wholeNumber)
    .option('--cpu-percent <count>', 'percent of one core (default: 100; not with vm)', wholeNumber)
    .option(
      '--max-processes <count>',
      'processes of 64 threads for which it has room (default: 0, none; not with vm)',
      wholeNumber,
    )
    .option('--file-mb <count>', 'size of its files in MiB (default: 64, vm: 32)', wholeNumber)
    .option('--output-mb <count>', 'output that ends it, in MiB (default: 16)', wholeNumber)
    .addOption(
      new Option('--engine <which>', 'engine of vm (default: the first that is there)').choices([
        'auto',
        'uml',
        'gvisor',
      ]),
    )
    .option('--kernel <file>', 'kernel of the engine uml (default: linux.uml on PATH)')
    .option(
      '--core <number>',
      'core for the engine uml, or each: the next one (default: each)',
      coreOrEach,
    )
    .option('--allow <layer...>', 'go on without no-cgroup, no-landlock or no-seccomp')
    .passThroughOptions()
    .action(async (file: string, args: string[], flags: SandboxFlags) => {
      const { runSandboxed } = await import('./commands/sandbox/sandbox.js');
      process.exitCode = await runSandboxed(file, args, flags);
    });
}

function addTop(root: Command): void {
  root
    .command('top')
    .description('show running programs that use manycore in this terminal')
    .argument('[pid]', 'pid of one program (default: all)', wholeNumber)
    .option('--once', 'print one table and exit')
    .option('--json', 'print JSON once and exit')
    .showHelpAfterError('(manycore top --help shows the flags; manycore dashboard is a web page)')
    .action(async (pid: number | undefined, flags: TopFlags) => {
      const { showPrograms } = await import('./commands/top/top.js');
      await showPrograms(pid, flags);
    });
}

function addDashboard(root: Command): void {
  root
    .command('dashboard')
    .description('show running programs that use manycore as a live web page')
    .option(
      '--port <port>',
      'port to bind (default: 7420, or any free port when it is taken)',
      wholeNumber,
    )
    .option('--host <address>', 'address to bind (default: 127.0.0.1, this machine only)')
    .action(async (flags: DashboardFlags) => {
      const { showDashboard } = await import('./commands/dashboard/dashboard.js');
      await showDashboard(flags);
    });
}

const doctorExitCodes = `
Exit code:
  0  all is well, or has room for improvement (ADVICE)
  1  something does not work (MISSING) or is a problem now (PROBLEM)
  2  the program cannot be inspected`;

function addDoctor(root: Command): void {
  root
    .command('doctor')
    .description('diagnose this machine or a running program, and suggest remedies')
    .argument(
      '[pid]',
      'pid of one Node.js program (default: the machine and all your servers)',
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
    .description('count the system calls of a program by name, thread and role')
    .argument('<target...>', 'pid of a process, or after -- a command to start')
    .option(
      '--seconds <count>',
      'duration of the trace in seconds (default: 5; a command: until it ends)',
      wholeNumber,
    )
    .addOption(
      new Option('--method <name>', 'tracing method (default: the best that works here)').choices(
        traceMethods,
      ),
    )
    .addOption(
      new Option('--by <what>', 'one table of calls per program, role or thread (default: program)')
        .choices(callGroups)
        .conflicts('json'),
    )
    .option('--json', 'print the whole report as JSON')
    .option('-o, --output <file>', 'write the report to a file')
    .option('--folded <file>', 'write times as folded stacks to a file, for a flame graph')
    .option('--folded-counts <file>', 'write counts of calls as folded stacks to a file')
    .showHelpAfterError('(manycore trace --help shows the flags; a command stands after --)')
    .action((target: string[], flags: TraceFlags) => traceProgram(target, flags));
}

function addProfile(root: Command): void {
  root
    .command('profile')
    .description('write CPU profiles of the event loops of a process, or of a worker')
    .argument(
      '<pid>',
      'pid of the process, as in manycore status; or of a worker process',
      wholeNumber,
    )
    .option('--seconds <count>', 'duration in seconds, at most 300 (default: 5)', wholeNumber)
    .option(
      '--thread <number>',
      'number of one thread, 0 is the main thread (default: all)',
      wholeNumber,
    )
    .option('--worker <number>', 'number of a worker of its pools, as in manycore top', wholeNumber)
    .option('--out <file>', 'file to write (default: manycore-PID.cpuprofile)')
    .action(async (pid: number, flags: ProfileFlags) => {
      const { profile } = await import('./commands/profile/profile.js');
      await profile(pid, flags);
    });
}

/** Flags of a unit stand before or after its file; those of a program only after it. */
async function runProgram(
  file: string | undefined,
  args: readonly string[],
  {
    unit: several,
    ...options
  }: Readonly<Record<string, string>> & { readonly unit?: readonly string[] },
): Promise<void> {
  const before = Object.entries(options).map(([name, value]) => `--${kebab(name)}=${value}`);
  const isList = several !== undefined || file?.endsWith('.json') === true;
  const isUnit = isList || before.length > 0 || hasUnitFlags(args);
  if (!isUnit && file !== undefined) {
    runFile(file, args);
    return;
  }
  const { flags, rest } = takeUnitFlags([...before, ...args]);
  const [extra] =
    several === undefined ? rest : [file, ...rest].filter((each) => each !== undefined);
  if (extra !== undefined) {
    throw new CodedError('OPTION_INVALID', `a unit gets --config, and no "${extra}"`);
  }
  if (several !== undefined) await runSeveral(unitsOfFlags(several), flags);
  else if (file === undefined) {
    throw new CodedError('OPTION_INVALID', 'nothing to run: give a file, or units by --unit');
  } else if (isList) await runSeveral(unitsOfFile(file), flags);
  else await runUnit(file, flags);
}

function collected(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

/** Formats an error text of commander like all other errors. */
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
    const stack = programStack(error) ?? unitStack(error);
    if (stack !== undefined) console.error(`${stack}\n`);
    console.error(`manycore: ${error.message} (${error.code})`);
    process.exitCode = usageExitCode;
  } else {
    throw error;
  }
}
