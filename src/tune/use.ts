// How what was found is used from now on: the command that reads the configuration file, written for a
// shell, and the program that the file has to name so that `manycore serve` alone serves it. What the
// command line says counts more than the file, and so does the environment: what the advice decides must
// not stay there.

import { statSync } from 'node:fs';
import { dirname, relative, resolve } from 'node:path';
import { type Configuration, flagName, flagNamesOf, variablesOf } from './configuration.js';
import { type Program, programOf, withoutCounts } from './launch.js';
import type { TuneOptions } from './options.js';

/** What a configuration has to have so that it names the program. */
export interface NamedApp {
  /** Seen from the folder of the configuration. */
  readonly app: string;
  /** Its own; left out where it has none. */
  readonly args?: readonly string[];
}

export interface Use {
  /** For a shell: the program as it was tuned, with what the file says. */
  readonly command: string;
  /** `undefined` where the command serves no program. */
  readonly app: NamedApp | undefined;
}

type UseOptions = Pick<TuneOptions, 'command' | 'serve' | 'main'>;

/** `config`: the path of the configuration file. Throws `OPTION_INVALID`. */
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

/** `undefined` where such a command would not do the same: Node has flags of its own, or the file is another. */
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

/** Behind `--` stand the program's own. */
function ours(args: readonly string[]): readonly string[] {
  const end = args.indexOf('--');
  return end < 0 ? args : args.slice(0, end);
}

function namedApp({ kind, rest }: Program, config: string): NamedApp | undefined {
  if (kind !== 'serve') return undefined;
  const [, , ...args] = rest;
  // Flags of `manycore serve` have values, none of which is a program.
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
