#!/usr/bin/env node
// The command: which subcommands there are and what flags they take. Each has a file of its own that
// does the work. A wrong command line is one sentence and exit code 2.

import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { CodedError } from '../errors.js';
import { packageVersion } from '../internal/index.js';
import { programStack, type Range, type StatusAddress } from '../serve/index.js';
import { addClusterFlags } from './cluster-flags.js';
import { doctor } from './doctor.js';
import { reloadServer, scaleServer, showStatus } from './remote.js';
import { runFile } from './run.js';
import { asksForUnit, runUnit, takeUnitFlags } from './run-unit.js';
import { type ServeFlags, serveApp } from './serve.js';
import { runWorker, type WorkerFlags } from './worker.js';

const usageExitCode = 2;

function program(): Command {
  const root = new Command('manycore')
    .description('Use every core from Node.js, and keep the event loops responsive while you do')
    .version(packageVersion())
    .enablePositionalOptions()
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(coded(text)) })
    .showHelpAfterError('(manycore --help shows what there is)');
  root
    .command('doctor')
    .description('what this machine allows, what is missing, and what that costs')
    .option('--json', 'print JSON')
    .action(async (options: { json?: boolean }) => {
      process.exitCode = await doctor(options.json === true, packageVersion());
    });
  const run = root
    .command('run')
    .description('run a program with its hosts already starting, or a unit on event loops')
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
  root
    .command('serve')
    .description('serve a program from several processes and event loops')
    .argument('[app]', 'the program: it listens, or exports what can')
    .argument('[args...]', 'its arguments; those with a dash after --')
    .option('-P, --processes <count>', 'processes: 4, or 2..8 to follow the load', countOrRange)
    .option('--max-processes <count>', 'as many as scale may ask for later', wholeNumber)
    .option('-L, --loops <count>', 'event loops in each process', countOrRange)
    .addOption(
      new Option('--plan <name>', 'who comes and goes with the load (default: event)').choices([
        'event',
        'prefork',
        'worker',
        'perchild',
      ]),
    )
    .addOption(
      new Option('--placement <name>', 'who gets a connection (default: least-loaded)').choices([
        'least-loaded',
        'round-robin',
        'kernel',
        'reuseport',
      ]),
    )
    .option(
      '--port <port>',
      'where an exported app listens (default: PORT, else 3000)',
      wholeNumber,
    )
    .option('--host <address>', 'and on which address (default: all)')
    .option('--unix <path>', 'or on which Unix socket')
    .option('--status <address>', 'show the status as a page at PORT or HOST:PORT', hostAndPort)
    .option('--tls-cert <file>', 'speak TLS for an exported app: the certificate, as PEM')
    .option('--tls-key <file>', 'and its key')
    .option('--http2', 'and HTTP/2')
    .option('--static <folder>', 'instead of a program: serve files')
    .option('--cgi <folder>', 'instead of a program: run CGI programs, under /cgi-bin/')
    .option('--user <name>', 'whose the processes are (for root)')
    .option('--group <name>', 'and of which group')
    .option('--reload-on-change', 'reload when a file beside the program changes')
    .option('--config <file>', 'options as JSON (default: manycore.config.json, without an app)')
    .option('--pid-file <path>', 'write the number of this process to a file while it runs')
    .showHelpAfterError(
      '(manycore serve --help shows the flags; those of the program stand after --)',
    )
    .action((app: string | undefined, args: string[], options: ServeFlags) =>
      serveApp(app, args, options),
    );
  const worker = root
    .command('worker')
    .description('lend hosts of this machine to the pools of a cluster')
    .requiredOption('--nats <url>', 'its NATS server: nats://HOST:PORT, or several with commas')
    .option('--hosts <count>', 'so many (default: as many as cores)', wholeNumber)
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
  root
    .command('status')
    .description('what the loops of the running servers do')
    .argument('[pid]', 'of one server', wholeNumber)
    .option('--json', 'print JSON')
    .action((pid: number | undefined, options: { json?: boolean }) =>
      showStatus(pid, options.json === true),
    );
  root
    .command('reload')
    .description('start every process of a running server anew, without losing a request')
    .argument('[pid]', 'of the server, where several run', wholeNumber)
    .action(reloadServer);
  root
    .command('scale')
    .description('serve from so many processes from now on')
    .argument('<processes>', '4, or 2..8 to follow the load', countOrRange)
    .argument('[pid]', 'of the server, where several run', wholeNumber)
    .action(scaleServer);
  return root;
}

/** Flags of a unit stand before or behind its file; a program has its own behind it. */
async function runProgram(
  file: string,
  args: readonly string[],
  options: Readonly<Record<string, string>>,
): Promise<void> {
  const before = Object.entries(options).map(([name, value]) => `--${kebab(name)}=${value}`);
  const all = [...before, ...args];
  if (!asksForUnit(all)) {
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

/** `4`, or `2..8`. */
function countOrRange(text: string): number | Range {
  const [, min, max] = /^(\d+)\.\.(\d+)$/.exec(text) ?? [];
  if (min !== undefined && max !== undefined) return { min: Number(min), max: Number(max) };
  if (/^\d+$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It must be a whole number, or two of them: 2..8');
}

/** `9000`, or `10.0.0.1:9000`. */
function hostAndPort(text: string): number | StatusAddress {
  const [, host, port] = /^(?:(.+):)?(\d+)$/.exec(text) ?? [];
  if (port === undefined) throw new InvalidArgumentError('It must be PORT or HOST:PORT');
  if (host === undefined) return Number(port);
  return { host: host.replace(/^\[(.*)\]$/, '$1'), port: Number(port) };
}

function wholeNumber(text: string): number {
  if (/^\d+$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It must be a whole number');
}

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
