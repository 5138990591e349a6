// Use of the result: the command that reads the configuration file, written for a shell, and the program
// that the file has to name so that `manycore serve` alone serves it. The command line and the environment
// override the file, so parameters of the advice must not stay there.

import { statSync } from 'node:fs';
import { dirname, relative, resolve } from 'node:path';
import { type Configuration, flagName, flagNamesOf, variablesOf } from './configuration.js';
import type { TuneOptions } from './options.js';
import { type Program, programOf, withoutCounts } from './program/launch.js';

/** Keys with which a configuration file names the program. */
export interface NamedApp {
  /** Path relative to the folder of the file. */
  readonly app: string;
  /** Arguments of the program; absent when it has none. */
  readonly args?: readonly string[];
}

export interface Use {
  /** For a shell: the tuned program with the configuration file. */
  readonly command: string;
  /** `undefined` when the command serves no program. */
  readonly app: NamedApp | undefined;
}

type UseOptions = Pick<TuneOptions, 'command' | 'serve' | 'main'>;

/** `config`: path of the configuration file. Throws `OPTION_INVALID`. */
export function useOf(
  { command, serve = false, main }: UseOptions,
  advice: Configuration,
  config: string,
): Use {
  const program = programOf(command, { serve, main });
  const served =
    program.kind === 'serve' ? serveWords(program, { command, serve }, advice, config) : undefined;
  const flags = serve ? ['--serve'] : [];
  const words = served ?? [
    'manycore',
    'tune',
    '--apply',
    ...flags,
    '--config',
    config,
    '--',
    ...command,
  ];
  return { command: words.map(quoted).join(' '), app: namedApp(program, config) };
}

/**
 * Returns `undefined` when such a command would differ: Node has flags of its own, or there is another
 * file.
 */
function serveWords(
  { nodeFlags, rest }: Program,
  { command, serve }: { readonly command: readonly string[]; readonly serve: boolean },
  advice: Configuration,
  config: string,
): string[] | undefined {
  const decided = flagNamesOf(advice);
  const isDecided = (word: string): boolean => decided.includes(flagName(word));
  const [, , ...args] = rest;
  const hasFile = ours(args).some((word) => /^--config(=|$)/.test(word));
  if (hasFile || !nodeFlags.every(isDecided)) return undefined;
  const head = serve
    ? ['manycore', 'serve']
    : command.slice(0, command.indexOf('serve') + 1).filter((word) => !isDecided(word));
  const unset = Object.keys(variablesOf(advice)).filter((name) => process.env[name] !== undefined);
  return [
    ...(unset.length === 0 ? [] : ['env', ...unset.flatMap((name) => ['-u', name])]),
    ...head,
    '--config',
    config,
    ...(advice.loops === undefined ? args : withoutCounts(args)),
  ];
}

/** Returns the words in front of `--`; those behind it are the program's own. */
function ours(args: readonly string[]): readonly string[] {
  const end = args.indexOf('--');
  return end < 0 ? args : args.slice(0, end);
}

function namedApp({ kind, rest }: Program, config: string): NamedApp | undefined {
  if (kind !== 'serve') return undefined;
  const [, , ...args] = rest;
  // Values of `manycore serve` flags are never programs.
  const app = ours(args).find((word) => /\.[cm]?[jt]s$/.test(word) && isFile(word));
  if (app === undefined) return undefined;
  const own = args.slice(ours(args).length + 1);
  return {
    app: relative(dirname(resolve(config)), resolve(app)),
    ...(own.length > 0 && { args: own }),
  };
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
