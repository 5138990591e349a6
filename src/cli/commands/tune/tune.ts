// `manycore tune`: searches under the user's load, prints the result, and writes report and configuration.
// INT and TERM end the search, and the result so far is printed.

import { accessSync, constants, existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { CodedError } from '../../../errors.js';
import { messageOf } from '../../../lib/index.js';
import {
  configurationText,
  type Goal,
  mergedConfig,
  type RunNews,
  readConfigFile,
  runTuned,
  startIn,
  startOf,
  type TuneOptions,
  type TuneReport,
  tune,
  useOf,
  writeJson,
} from '../../../tune/index.js';
import { needsForwarding } from '../../ctrl-c.js';
import { FileWrites } from '../../file-writes.js';
import { startConfig } from '../serve/serve-config.js';
import { tuneText } from './tune-text.js';

export interface TuneFlags {
  readonly load?: string;
  readonly task?: string;
  readonly concurrency?: number;
  readonly url?: string;
  readonly goal?: Goal;
  readonly minutes?: number;
  readonly seconds?: number;
  readonly readySeconds?: number;
  readonly only?: string;
  readonly serve?: boolean;
  readonly apply?: boolean;
  readonly config: string;
  readonly report: string;
  /** False: no file is written. */
  readonly write: boolean;
  readonly json?: boolean;
}

const wrongExitCode = 2;
/** Exit code of shells for SIGINT. */
const interruptedExitCode = 130;

/** Resolves with the exit code. Rejects with the errors of `tune` and `runTuned`, and `TUNE_WRITE_FAILED`. */
export async function tuneProgram(
  command: readonly string[],
  flags: TuneFlags,
  main: string,
): Promise<number> {
  const { config, apply = false, write, only, ...rest } = flags;
  const options: TuneOptions = { ...rest, command, only: only?.split(','), main };
  if (apply && flags.load === undefined && flags.task === undefined) {
    const found = startConfig(config);
    return runTuned(options, (program) => startIn(found, program), needsForwarding);
  }
  readConfigFile(config);
  if (apply && flags.task !== undefined) {
    throw new CodedError('OPTION_INVALID', 'a task is no program to run: leave --apply out');
  }
  if (write) for (const file of [config, flags.report]) checkWritable(file);
  const report = await search(options, flags.json === true);
  if (flags.json === true) console.log(JSON.stringify(report, undefined, 2));
  else console.log(tuneText(report));
  if (!report.isComplete) return printIncomplete(report);
  const isAllWritten = !write || writeAll(report, options, flags);
  if (apply) return runTuned(options, () => startOf(report.advice), needsForwarding);
  return isAllWritten ? 0 : wrongExitCode;
}

async function search(options: TuneOptions, isJson: boolean): Promise<TuneReport> {
  const controller = new AbortController();
  const end = (signal: NodeJS.Signals): void => {
    if (controller.signal.aborted) process.exit(interruptedExitCode); // kills the running program
    controller.abort(new Error(signal));
  };
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  for (const signal of signals) process.on(signal, end);
  const progress = new Progress(isJson ? undefined : process.stderr);
  try {
    return await tune(options, {
      signal: controller.signal,
      onBegin: () => progress.show('a first run, as it is'),
      onRun: (run) => progress.show(progressText(run)),
    });
  } finally {
    progress.clear();
    for (const signal of signals) process.off(signal, end);
  }
}

function progressText({ number, configuration, secondsLeft }: RunNews): string {
  const minutes = Math.ceil(secondsLeft / 60);
  return `run ${number}, at most ${minutes} min more: ${configurationText(configuration)}`;
}

/** One line that is overwritten; nothing when the output is no terminal. */
class Progress {
  readonly #out: NodeJS.WriteStream | undefined;

  constructor(out: NodeJS.WriteStream | undefined) {
    this.#out = out?.isTTY === true ? out : undefined;
  }

  show(text: string): void {
    const columns = this.#out?.columns ?? 80;
    this.#out?.write(`\r\u001b[K${text.slice(0, columns - 1)}`);
  }

  clear(): void {
    this.#out?.write('\r\u001b[K');
  }
}

/** Prints why a search is incomplete; returns the exit code. No file is written then. */
function printIncomplete({ problem }: TuneReport): number {
  if (problem === undefined) {
    console.error('manycore: the search was ended before its time; nothing was written');
    return interruptedExitCode;
  }
  console.error(`manycore: ${problem.message} (${problem.code})`);
  return wrongExitCode;
}

/** Writes report and configuration, and prints failures; true: there were none. */
function writeAll(
  report: TuneReport,
  options: TuneOptions,
  { config, report: reportFile, json, task }: TuneFlags,
): boolean {
  const files = new FileWrites();
  const say = (text: string): void => {
    if (json !== true) console.log(text);
  };
  const write = (text: string, work: () => void): boolean => {
    const isWritten = files.do(work);
    if (isWritten) say(text);
    return isWritten;
  };
  write(`\nthe whole report: ${reportFile}`, () => writeJson(reportFile, report));
  if (Object.keys(report.advice).length > 0) {
    const use = task === undefined ? useOf(options, report.advice, config) : undefined;
    const isWritten = write(`the configuration, with its reasons: ${config}`, () => {
      const before = readConfigFile(config); // it may have been changed meanwhile
      writeJson(config, mergedConfig(before, report.advice, report.reasons, use?.app));
    });
    if (isWritten && use !== undefined) say(`with them it runs by: ${use.command}`);
  }
  return !files.printFailures();
}

/** Checks that a file is writable, before the search takes minutes. */
function checkWritable(path: string): void {
  try {
    accessSync(existsSync(path) ? path : dirname(resolve(path)), constants.W_OK);
  } catch (cause) {
    const message = `${path} cannot be written: ${messageOf(cause)}; name another file, or give --no-write`;
    throw new CodedError('TUNE_WRITE_FAILED', message, { cause });
  }
}
