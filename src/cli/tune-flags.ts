// The flags of `manycore tune`.

import { type Command, Option } from 'commander';
import { aNumber } from './flag-values.js';
import { type TuneFlags, tuneProgram } from './tune.js';

const examples = `
Examples:
  manycore tune --load 'wrk -d{seconds} --latency {url}' -- node server.js
  manycore tune --task task.js
  manycore tune --apply -- node server.js`;

/** Adds the command to `root`. */
export function addTuneCommand(root: Command): void {
  root
    .command('tune')
    .description('find better sizes for a program under your own load, and say why')
    .argument('[command...]', 'the program, behind --: node server.js, or manycore serve …')
    .option('--load <load>', "what loads it: 'wrk -d{seconds} --latency {url}', or your script.js")
    .option('--task <file>', 'instead of program and load: a module whose default export is called')
    .option('--concurrency <count>', 'calls of the task at a time (default: 1)', aNumber)
    .option(
      '--url <url>',
      'where the program listens (default: at a port that it is given as PORT)',
    )
    .addOption(
      new Option('--goal <name>', 'what is to be better (default: throughput)').choices([
        'throughput',
        'p99',
        'cpu',
      ]),
    )
    .option('--minutes <minutes>', 'how long all of it may take (default: 10)', aNumber)
    .option(
      '--seconds <seconds>',
      'how long a run takes (default: what the minutes allow)',
      aNumber,
    )
    .option(
      '--ready-seconds <seconds>',
      'how long the program may take until it is ready (default: 30)',
      aNumber,
    )
    .option(
      '--only <parameters>',
      'try only these, with commas: loops, blockingThreads, heapLimit, poolWorkers, gcThreads, semiSpace, affinity',
    )
    .option('--serve', 'try processes × loops: run the program under manycore serve')
    .option('--apply', 'then run the program with it; without --load: with what was found before')
    .option('--config <file>', 'file to write the configuration into', 'manycore.config.json')
    .option('--report <file>', 'where the report is written', 'manycore.tune.json')
    .option('--no-write', 'write neither')
    .option('--json', 'print the report as JSON')
    .passThroughOptions()
    .addHelpText('after', examples)
    .action(async (command: string[], flags: TuneFlags) => {
      process.exitCode = await tuneProgram(command, flags, process.argv[1] ?? '');
    });
}
