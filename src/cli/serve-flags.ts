// The flags of `manycore serve`, and of the commands to its servers that run: status, reload, scale.

import { type Command, Option } from 'commander';
import { countOrRange, hostAndPort, wholeNumber } from './flag-values.js';
import { reloadServer, scaleServer, showStatus } from './remote.js';
import { type ServeFlags, serveApp } from './serve.js';

/** Adds the command to `root`. */
export function addServe(root: Command): void {
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
    .option('--metrics <address>', 'serve metrics for Prometheus at PORT or HOST:PORT', hostAndPort)
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
}

/** Adds the commands to `root`. */
export function addServerCommands(root: Command): void {
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
}
