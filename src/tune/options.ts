// Options of `tune`, checked and filled.

import { existsSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { CodedError } from '../errors.js';
import { boolean, integer, invalid, number, oneOf, string } from '../lib/index.js';
import { type Parameter, parameters } from './configuration.js';
import { commandLoad, type Load, scriptLoad, taskCommand } from './load/load.js';
import { type Goal, goals } from './load/run-stats.js';
import { type Program, programOf } from './program/launch.js';

export interface TuneOptions {
  /** The program and its arguments; empty with a task. */
  readonly command: readonly string[];
  /** A command with `{url}`, `{port}`, `{seconds}`, or the path of a script. */
  readonly load?: string | undefined;
  /** Path of a module whose default export is called repeatedly, instead of program and load. */
  readonly task?: string | undefined;
  /** Concurrent calls of the task. Default: 1. */
  readonly concurrency?: number | undefined;
  /** URL of the program. Default: a port that the program gets in `PORT`. */
  readonly url?: string | undefined;
  /** Default: `throughput`. */
  readonly goal?: Goal | undefined;
  /** Time of the whole search, approximately. Default: 10. */
  readonly minutes?: number | undefined;
  /** Length of a run, which a warm-up of half that time precedes. Default: derived from `minutes`. */
  readonly seconds?: number | undefined;
  /** Parameters to try. Default: all that may help. */
  readonly only?: readonly string[] | undefined;
  /** Runs the program under `manycore serve`. Default: false. */
  readonly serve?: boolean | undefined;
  /** Time in which the program has to be ready. Default: 30. */
  readonly readySeconds?: number | undefined;
  /** Path of the command `manycore`. */
  readonly main: string;
}

export interface FilledTuneOptions {
  readonly program: Program;
  readonly load: Load | 'task';
  /** The program as text for people. */
  readonly programText: string;
  readonly loadText: string;
  readonly url: string | undefined;
  readonly goal: Goal;
  readonly minutes: number;
  readonly seconds: number | undefined;
  readonly only: readonly Parameter[] | undefined;
  readonly readyTimeoutMs: number;
}

/** Throws `OPTION_INVALID`, `CLI_FILE_NOT_FOUND`. */
export function fillTuneOptions(given: TuneOptions): FilledTuneOptions {
  const { command, load, task, url } = given;
  const shared = {
    url: url === undefined ? undefined : checkUrl(url),
    goal: oneOf('goal', given.goal ?? 'throughput', goals),
    minutes: number('minutes', given.minutes ?? 10, 0),
    seconds: given.seconds === undefined ? undefined : positive('seconds', given.seconds),
    only: given.only?.map(parameterNamed),
    readyTimeoutMs: 1000 * positive('readySeconds', given.readySeconds ?? 30),
  };
  const serve = boolean('serve', given.serve ?? false);
  if (task !== undefined) {
    if (command.length > 0 || load !== undefined || url !== undefined || serve) {
      const message =
        'a task is program and load in one: give --task alone, or --load and a program';
      throw new CodedError('OPTION_INVALID', message);
    }
    const path = fileAt(task, 'the module of the task');
    const concurrency = integer('concurrency', given.concurrency ?? 1, 1, 100_000);
    const program = programOf(taskCommand(path, concurrency), { serve, main: given.main });
    const loadText = concurrency === 1 ? 'one call at a time' : `${concurrency} calls at a time`;
    return { ...shared, program, load: 'task', programText: task, loadText };
  }
  if (command.length === 0) {
    throw new CodedError('OPTION_INVALID', 'there is no program to tune: give it behind --');
  }
  if (load === undefined) {
    const message = "there is no load: give --load 'wrk -d{seconds} --latency {url}', or a script";
    throw new CodedError('OPTION_INVALID', message);
  }
  return {
    ...shared,
    program: programOf(command, { serve, main: given.main }),
    load: loadOf(string('load', load, 'a command or the path of a script')),
    programText: command.join(' '),
    loadText: load,
  };
}

/** Returns a script for a word that names a module, and a command otherwise. */
function loadOf(load: string): Load {
  if (!/^\S+\.[cm]?[jt]s$/.test(load)) return commandLoad(load);
  return scriptLoad(fileAt(load, 'the script of the load'));
}

function fileAt(given: string, what: string): string {
  const path = resolve(given);
  if (existsSync(path) && statSync(path).isFile()) return path;
  throw new CodedError('CLI_FILE_NOT_FOUND', `there is no file ${path}: give ${what}`);
}

function checkUrl(url: string): string {
  if (URL.canParse(url) && new URL(url).hostname !== '') return url;
  throw invalid('url', url, 'the address of the program, such as http://127.0.0.1:3000/');
}

function positive(name: string, value: number): number {
  if (value > 0 && Number.isFinite(value)) return value;
  throw invalid(name, value, 'a number above 0');
}

function parameterNamed(name: string): Parameter {
  const found = parameters.find((each) => each === name);
  if (found !== undefined) return found;
  throw invalid('only', name, `some of ${parameters.join(',')}`);
}
