// Flags of `manycore serve`, and of the commands for running servers: status, reload, scale.

import { type Command, Option } from 'commander';
import {
  countOrNever,
  countOrRange,
  hostAndPort,
  stickyKey,
  wholeNumber,
} from '../../flag-values.js';
import {
  listServers,
  printLogs,
  reloadServer,
  scaleServer,
  showStatus,
  stopServer,
  upgradeServer,
} from './remote.js';
import { type ServeFlags, serveApp } from './serve.js';

/** Adds the command to `root`. */
export function addServe(root: Command): void {
  root
    .command('serve')
    .description('serve a program from several processes and event loops')
    .argument('[app]', 'the program: it listens itself, or exports an app')
    .argument('[args...]', 'arguments of the program; those with a dash after --')
    .option(
      '-P, --processes <count>',
      'number of processes: 4, or 2..8 to follow the load',
      countOrRange,
    )
    .option('--max-processes <count>', 'upper limit for manycore scale', wholeNumber)
    .option(
      '-L, --loops <count>',
      'event loops per process: 2, or 1..4 to follow the load',
      countOrRange,
    )
    .addOption(
      new Option(
        '--plan <name>',
        'what follows the load: processes, loops or nothing (default: event)',
      ).choices(['event', 'prefork', 'worker', 'perchild']),
    )
    .addOption(
      new Option(
        '--placement <name>',
        'which loop gets a new connection (default: least-loaded)',
      ).choices(['least-loaded', 'round-robin', 'kernel', 'reuseport']),
    )
    .option(
      '--sticky <key>',
      'keep each client at one loop: address, cookie:NAME, header:NAME or query:NAME',
      stickyKey,
    )
    .option(
      '--port <port>',
      'port to bind for an exported app (default: PORT, else 3000)',
      wholeNumber,
    )
    .option('--name <text>', 'name for list, status, reload, scale and stop (default: of its file)')
    .option('--host <address>', 'address to bind (default: all addresses)')
    .option('--unix <path>', 'Unix socket to bind instead of a port')
    .option('--no-file-thread', 'let the loops answer all requests for files of --static')
    .option('--no-rescue', 'leave kept-alive connections at a loop that is blocked')
    .option('--status <address>', 'serve a status page at PORT or HOST:PORT', hostAndPort)
    .option('--health <address>', 'answer /livez and /readyz at PORT or HOST:PORT', hostAndPort)
    .option('--metrics <address>', 'serve metrics for Prometheus at PORT or HOST:PORT', hostAndPort)
    .option('--tls-cert <file>', 'TLS certificate (PEM), for an exported app')
    .option('--tls-key <file>', 'TLS private key (PEM)')
    .option('--http2', 'speak HTTP/2 over TLS')
    .option('--static <folder>', 'serve the files of a folder instead of a program')
    .option(
      '--cgi <folder>',
      'run the CGI programs of a folder under /cgi-bin/ instead of a program',
    )
    .option('--user <name>', 'run server processes as this user (root only)')
    .option('--group <name>', 'run server processes as this group (root only)')
    .option('--reload-at <pattern>', "reload at these times, a cron pattern: '0 4 * * *'")
    .option('--reload-on-change', 'reload when a file in the folder of the program changes')
    .option(
      '--max-failures <count>',
      'give up after so many processes in a row that fail, or never (default: 5)',
      countOrNever,
    )
    .option('--log <file>', 'write the output of the processes to a file, each line with its loop')
    .addOption(
      new Option(
        '--log-format <name>',
        'format of lines (default: text; without --log, printed)',
      ).choices(['text', 'json']),
    )
    .option('--access-log <file>', 'write a line for each request to a file')
    .addOption(
      new Option('--access-log-format <name>', 'format of its lines (default: common)').choices([
        'common',
        'json',
      ]),
    )
    .option('--log-max-mb <count>', 'rotate the log at this size (default: never)', wholeNumber)
    .option('--log-keep <count>', 'number of old logs to keep (default: 5)', wholeNumber)
    .option('--config <file>', 'options file, JSON (default without an app: manycore.config.json)')
    .option(
      '--env-file <file>',
      'set environment variables from a file; may be repeated, the last one counts',
      (file: string, files: readonly string[] = []) => [...files, file],
    )
    .option('--pid-file <path>', 'write the pid of this process to a file while it runs')
    .showHelpAfterError(
      '(manycore serve --help shows the flags; those of the program stand after --)',
    )
    .action((app: string | undefined, args: string[], options: ServeFlags) =>
      serveApp(app, args, options),
    );
}

const which = 'name or pid of the server, when several run';

/** Adds the commands to `root`. */
export function addServerCommands(root: Command): void {
  root
    .command('list')
    .description('list running servers, one line each')
    .option('--json', 'print JSON')
    .action((options: { json?: boolean }) => listServers(options.json === true));
  root
    .command('status')
    .description('show the loops of running servers')
    .argument('[server]', 'name or pid of one server (default: all)')
    .option('--json', 'print JSON')
    .action((server: string | undefined, options: { json?: boolean }) =>
      showStatus(server, options.json === true),
    );
  root
    .command('reload')
    .description('restart every process of a running server without losing a request')
    .argument('[server]', which)
    .action(reloadServer);
  root
    .command('scale')
    .description('change the number of processes of a running server')
    .argument('<processes>', 'number of processes: 4, or 2..8 to follow the load', countOrRange)
    .argument('[server]', which)
    .action(scaleServer);
  root
    .command('upgrade')
    .description('replace a running server by a new version of manycore, Node or its options')
    .argument('[server]', which)
    .action(upgradeServer);
  root
    .command('stop')
    .description('end a running server after its requests')
    .argument('[server]', which)
    .action(stopServer);
  root
    .command('logs')
    .description('print the output of a running server whose output is logged')
    .argument('[server]', which)
    .option('-n, --lines <count>', 'number of last lines, at most 1000 (default: 20)', wholeNumber)
    .option('-f, --follow', 'go on with what it prints')
    .option('--json', 'print JSON')
    .action(printLogs);
}
