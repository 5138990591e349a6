// The tuned program: the meaning of its command line, and the command, environment and cores that start a
// configuration. Node flags are put into the command where possible, because there they override
// NODE_OPTIONS. A flag that the configuration decides is removed wherever it was. Not here: starting it
// (program.ts).

import { basename } from 'node:path';
import { CodedError } from '../../errors.js';
import { decidedBy, flagName } from '../configuration.js';
import type { Start } from './start.js';

export interface Program {
  /** Words in front of the place for Node flags; without such a place all words. */
  readonly executable: readonly string[];
  /** Node flags of the present command. */
  readonly nodeFlags: readonly string[];
  readonly rest: readonly string[];
  /** `node`: started by node. `serve`: by `manycore serve`. `other`: by a script, or another program. */
  readonly kind: 'node' | 'serve' | 'other';
}

/** Command, environment and cores of a start. */
export interface Launch {
  readonly command: readonly string[];
  /** Changes to our own environment; `undefined` removes a variable. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Cores that the program may run on; `undefined`: all that we may. */
  readonly cores: readonly number[] | undefined;
}

export interface ProgramOptions {
  /** True: a program that is started by node runs under `manycore serve`. */
  readonly serve: boolean;
  /** Path of the command `manycore`. */
  readonly main: string;
}

/** Flags of Node whose value is the next word. */
const withValue = new Set(
  '-r --require --import --loader --experimental-loader -C --conditions --env-file --title'.split(
    ' ',
  ),
);

/** Throws `OPTION_INVALID`. */
export function programOf(command: readonly string[], { serve, main }: ProgramOptions): Program {
  const [executable = '', ...words] = command;
  const name = basename(executable).replace(/\.exe$/, '');
  const served = servedBy(name, words);
  if (served !== undefined) return serveProgram([], served, main);
  if (name !== 'node') {
    if (!serve) return { executable: command, nodeFlags: [], rest: [], kind: 'other' };
    const message = `${executable} cannot be served: with --serve the command is "node FILE"`;
    throw new CodedError('OPTION_INVALID', message);
  }
  const end = endOfFlags(words);
  const [nodeFlags, rest] = [words.slice(0, end), words.slice(end)];
  if (!serve) {
    const underNode = servedBy(basename(rest[0] ?? ''), rest.slice(1));
    if (underNode !== undefined) return serveProgram(nodeFlags, underNode, main, executable);
    return { executable: [executable], nodeFlags, rest, kind: 'node' };
  }
  const [app, ...args] = rest;
  return serveProgram(nodeFlags, app === undefined ? [] : [app, '--', ...args], main, executable);
}

/** `node`: path of the named Node. */
function serveProgram(
  nodeFlags: string[],
  args: readonly string[],
  main: string,
  node = process.execPath,
): Program {
  return {
    executable: [node],
    nodeFlags,
    rest: [main, 'serve', ...args],
    kind: 'serve',
  };
}

/** Returns the arguments of `manycore serve`, if these words start it. */
function servedBy(name: string, words: readonly string[]): readonly string[] | undefined {
  if (/^manycore(\.js)?$/.test(name) && words[0] === 'serve') return words.slice(1);
  if (name !== 'npx') return undefined;
  const at = words.indexOf('manycore');
  const isFirst = at >= 0 && words.slice(0, at).every((word) => word.startsWith('-'));
  return isFirst && words[at + 1] === 'serve' ? words.slice(at + 2) : undefined;
}

function endOfFlags(words: readonly string[]): number {
  let at = 0;
  while (words[at]?.startsWith('-') === true) at += withValue.has(words[at] ?? '') ? 2 : 1;
  return Math.min(at, words.length);
}

export function launchOf(program: Program, { flags, variables, counts, cores }: Start): Launch {
  const { executable, kind } = program;
  const decided = decidedBy(flags);
  const keeps = (flag: string): boolean => !decided.includes(flagName(flag));
  const ownFlags = program.nodeFlags.filter(keeps);
  const { NODE_OPTIONS: optionsBefore = '' } = { ...process.env, ...variables };
  const inherited = optionsBefore.split(/\s+/).filter(Boolean).filter(keeps);
  const options = kind === 'other' ? [...inherited, ...flags] : inherited;
  const command =
    kind === 'other'
      ? [...executable]
      : [...executable, ...flags, ...ownFlags, ...restWith(program, counts)];
  const nodeOptions = options.length === 0 ? undefined : options.join(' ');
  return {
    command,
    env: { ...variables, NODE_OPTIONS: nodeOptions },
    cores,
  };
}

/** A flag of `manycore serve` with a count: `-P 8`, `-P8`, `--processes 8`, `--processes=8`. */
interface CountFlag {
  readonly what: 'processes' | 'loops';
  readonly value: string | undefined;
  /** Number of words of the flag. */
  readonly words: 1 | 2;
}

function countFlagAt(args: readonly string[], at: number): CountFlag | undefined {
  const found = /^(?:-([PL])(.+)?|--(processes|loops)(?:=(.*))?)$/s.exec(args[at] ?? '');
  if (found === null) return undefined;
  const [, short, shortValue, long, longValue] = found;
  const what = short === 'P' || long === 'processes' ? 'processes' : 'loops';
  const joined = shortValue ?? longValue;
  return { what, value: joined ?? args[at + 1], words: joined === undefined ? 2 : 1 };
}

/** Returns the words behind the Node flags. */
function restWith({ rest, kind }: Program, counts: readonly string[]): readonly string[] {
  if (kind !== 'serve' || counts.length === 0) return rest;
  const [main = '', serve = '', ...args] = rest;
  return [main, serve, ...counts, ...(counts.length === 2 ? withoutCounts(args) : args)];
}

/** Removes counts from arguments of `manycore serve`; words behind `--` are the program's own, and stay. */
export function withoutCounts(args: readonly string[]): string[] {
  const ours = flagsOfServe(args);
  const kept: string[] = [];
  for (let at = 0; at < ours.length; ) {
    const flag = countFlagAt(ours, at);
    if (flag === undefined) kept.push(ours[at] ?? '');
    at += flag?.words ?? 1;
  }
  return [...kept, ...args.slice(ours.length)];
}

function flagsOfServe(args: readonly string[]): readonly string[] {
  const end = args.indexOf('--');
  return end < 0 ? args : args.slice(0, end);
}

/** Present values of the command line and the environment, where they are set. */
export interface Current {
  readonly loops: { readonly processes?: number; readonly loops?: number };
  readonly poolWorkers: number | undefined;
  readonly blockingThreads: number | undefined;
  readonly heapLimitMb: number | undefined;
  readonly semiSpaceMb: number | undefined;
  readonly gcThreads: number | undefined;
}

export function currentOf({ nodeFlags, rest, kind }: Program): Current {
  const inherited = (process.env['NODE_OPTIONS'] ?? '').split(/\s+/);
  const flags = [...inherited, ...nodeFlags]; // the last one counts
  const valueOf = (name: string): number | undefined =>
    positive(flags.findLast((flag) => flagName(flag) === name)?.replace(/^.*?=/, ''));
  const args = kind === 'serve' ? flagsOfServe(rest) : [];
  const counts = args.flatMap((_, at) => countFlagAt(args, at) ?? []);
  const count = (of: CountFlag['what']): number | undefined =>
    positive(counts.findLast(({ what }) => what === of)?.value);
  const processes = count('processes');
  const loops = count('loops');
  const isSingle = flags.some((flag) => flagName(flag) === '--single-threaded-gc');
  return {
    loops: { ...(processes && { processes }), ...(loops && { loops }) },
    poolWorkers: positive(process.env['MANYCORE_CORES']),
    blockingThreads: positive(process.env['UV_THREADPOOL_SIZE']),
    heapLimitMb: valueOf('--max-old-space-size'),
    semiSpaceMb: valueOf('--max-semi-space-size'),
    gcThreads: isSingle ? 0 : valueOf('--v8-pool-size'),
  };
}

function positive(text: string | undefined): number | undefined {
  const value = Number(text ?? '');
  return Number.isInteger(value) && value > 0 ? value : undefined;
}
