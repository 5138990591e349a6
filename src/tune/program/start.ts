// Start of a program in a candidate configuration, or with a whole configuration file. A file applies as
// far as `manycore serve` would apply it, including keys that were not tuned. Keys that cannot apply are
// refused, so that none is wrongly taken to be in force. Not here: the command (launch.ts).

import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { CodedError } from '../../errors.js';
import { type Configuration, flagsOf, variablesOf } from '../configuration.js';
import type { Program } from './launch.js';

export interface Start {
  /** Flags of Node. */
  readonly flags: readonly string[];
  readonly variables: Readonly<Record<string, string>>;
  /** Flags of `manycore serve`: `--processes=2`, `--loops=1`. */
  readonly counts: readonly string[];
  /** Cores that the program may run on; `undefined`: all that we may. */
  readonly cores: readonly number[] | undefined;
}

type Count = number | { readonly min: number; readonly max: number };

/** The part of a configuration file about the start of programs, fully checked. */
export interface StartConfig {
  /** Path of the file. */
  readonly file: string;
  /** Absolute paths of the programs that the file serves; `[]` when it names none. */
  readonly apps: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly nodeFlags: readonly string[];
  readonly affinity: readonly number[];
  readonly processes?: Count | undefined;
  readonly loops?: Count | undefined;
}

export function startOf(configuration: Configuration): Start {
  const { loops, affinity } = configuration;
  return {
    flags: flagsOf(configuration),
    variables: variablesOf(configuration),
    counts: loops === undefined ? [] : countsOf(loops),
    cores: affinity,
  };
}

/** Throws `OPTION_INVALID` for a configuration of another program, or of another kind of program. */
export function startIn(config: StartConfig, program: Program): Start {
  const { file, apps, nodeFlags, env, affinity } = config;
  if (apps.length > 0 && isAnother(program, apps)) {
    const message = `${file} is for ${apps.join(', ')}, and not for this program: name its own with --config, or take app out of the file`;
    throw new CodedError('OPTION_INVALID', message);
  }
  const counts = countsOf(config);
  if (counts.length > 0 && program.kind === 'node') {
    const message = `${file} sets processes or loops, which only manycore serve has: give --serve, or take them out of the file`;
    throw new CodedError('OPTION_INVALID', message);
  }
  const cores = affinity.length === 0 ? undefined : affinity;
  return { flags: nodeFlags, variables: env, counts, cores };
}

function countsOf({ processes, loops }: Pick<StartConfig, 'processes' | 'loops'>): string[] {
  return [
    ...(processes === undefined ? [] : [`--processes=${countText(processes)}`]),
    ...(loops === undefined ? [] : [`--loops=${countText(loops)}`]),
  ];
}

function countText(count: Count): string {
  return typeof count === 'number' ? String(count) : `${count.min}..${count.max}`;
}

/** Returns true when the command runs another program. A command without a file (`npm start`) is accepted. */
function isAnother({ executable, rest, kind }: Program, apps: readonly string[]): boolean {
  const [first = '.'] = rest; // a folder has its main file in package.json
  const words = kind === 'other' ? executable.slice(1) : rest.slice(kind === 'serve' ? 2 : 0);
  const scripts = words.map(scriptAt).filter((path) => path !== undefined);
  if (scripts.some((path) => apps.includes(path))) return false;
  return scripts.length > 0 || (kind === 'node' && !isFolder(first));
}

/** Resolves `app` to `app.js`, as Node does. */
function scriptAt(word: string): string | undefined {
  return [word, `${word}.js`].map((path) => resolve(path)).find(isScript);
}

function isScript(path: string): boolean {
  return /\.[cm]?[jt]s$/.test(path) && statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
