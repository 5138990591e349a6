// Flags of `manycore init`.

import type { Command } from 'commander';
import { initDocker, initSystemd } from './init.js';
import { initPm2 } from './pm2-file.js';

/** Adds the command to `root`. */
export function addInit(root: Command): void {
  const init = root
    .command('init')
    .description('print a file to begin with: a unit of systemd, a Dockerfile, a configuration');
  init
    .command('systemd')
    .description('print a unit of systemd')
    .argument('<app>', 'the program to serve')
    .argument('[args...]', 'flags of manycore serve, after --')
    .option('--name <text>', 'name of the unit and of the app (default: of its file)')
    .option('--user', "a unit of the user's own systemd")
    .option('--write', 'write NAME.service here, and print how to install it')
    .action(initSystemd);
  init
    .command('docker')
    .description('print a Dockerfile')
    .argument('<app>', 'the program to serve')
    .argument('[args...]', 'flags of manycore serve, after --')
    .option('--write', 'write Dockerfile here, and print how to use it')
    .action(initDocker);
  init
    .command('pm2')
    .description('print a configuration for an ecosystem file of PM2')
    .argument('[file]', 'the file (default: ecosystem.config.js)')
    .option('--env <name>', 'environment whose env_NAME counts, as production')
    .option('--only <app>', 'name of the one app to translate')
    .option('--write', 'write manycore.config.json beside the file')
    .action(initPm2);
}
