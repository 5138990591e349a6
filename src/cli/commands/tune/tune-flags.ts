// Flags of `manycore tune`.

import { type Command, Option } from 'commander';
import { aNumber } from '../../flag-values.js';
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
    .description('find better sizes for a program under your own load, with reasons')
    .argument('[command...]', 'the program, after --: node server.js, or manycore serve …')
    .option('--load <load>', "load generator: 'wrk -d{seconds} --latency {url}', or your script.js")
    .option('--task <file>', 'module whose default export is measured, instead of program and load')
    .option('--concurrency <count>', 'concurrent calls of the task (default: 1)', aNumber)
    .option('--url <url>', 'URL of the program (default: a port that it gets as PORT)')
    .addOption(
      new Option('--goal <name>', 'what to optimize (default: throughput)').choices([
        'throughput',
        'p99',
        'cpu',
      ]),
    )
    .option('--minutes <minutes>', 'time limit of the search in minutes (default: 10)', aNumber)
    .option(
      '--seconds <seconds>',
      'duration of one run in seconds (default: by --minutes)',
      aNumber,
    )
    .option(
      '--ready-seconds <seconds>',
      'time limit for the start of the program in seconds (default: 30)',
      aNumber,
    )
    .option(
      '--only <parameters>',
      'parameters to try, comma-separated: loops, blockingThreads, heapLimit, poolWorkers, gcThreads, semiSpace, affinity',
    )
    .option('--serve', 'try processes × loops: run the program under manycore serve')
    .option('--apply', 'run the program with the result; without --load with the last one')
    .option('--config <file>', 'file for the configuration', 'manycore.config.json')
    .option('--report <file>', 'file for the report', 'manycore.tune.json')
    .option('--no-write', 'write neither configuration nor report')
    .option('--json', 'print the report as JSON')
    .passThroughOptions()
    .addHelpText('after', examples)
    .action(async (command: string[], flags: TuneFlags) => {
      process.exitCode = await tuneProgram(command, flags, process.argv[1] ?? '');
    });
}
