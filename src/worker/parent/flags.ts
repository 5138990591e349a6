// Flags of node with which this process was started, and which its workers inherit: from its command line
// and from the variable NODE_OPTIONS.

import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isProgramPreload } from '../../context/index.js';

/** Flags of this process that a worker must not repeat, nor their values up to the next flag. */
const ownFlags: ReadonlySet<string> = new Set([
  '-e',
  '--eval',
  '-p',
  '-pe',
  '--print',
  '-c',
  '--check',
  '-i',
  '--interactive',
  '--test',
  '--watch',
  '--input-type',
]);
const ownFlagPrefixes = [
  '--inspect',
  '--test-',
  '--watch-',
  '--cpu-prof',
  '--heap-prof',
  '--prof',
  '--input-type=',
  '--eval=',
  '--print=',
];

/**
 * Flags that select the modules to load, and their way of loading. A thread that is given flags has no
 * others, and it refuses flags of V8 and of the whole process, with which Node 26 starts each file of a
 * test run.
 */
const moduleFlags =
  /^(-r|-C|--require|--import|--loader|--experimental-loader|--conditions|--enable-source-maps|--preserve-symlinks|--experimental-strip-types|--experimental-transform-types)(=|$)/;

/** Returns the flags of `execArgv` that make sense in a worker as well: loaders, conditions, V8's own. */
export function inheritedFlags(execArgv: readonly string[]): string[] {
  return withValues(execArgv, (flag) => !isOwnFlag(flag));
}

/** Returns the flags that a thread can have apart from those of its process. */
export function threadFlags(execArgv: readonly string[]): string[] {
  return withValues(execArgv, (flag) => moduleFlags.test(flag));
}

/** True: a thread that inherits these would run the program again, or refuse an entry that is a file. */
export function mustNotRepeat(execArgv: readonly string[]): boolean {
  return groups(execArgv, String).some(
    (words) => /^--input-type(=|$)/.test(words[0] ?? '') || loadsProgram(words),
  );
}

/** True: Node loads other modules in this process before the one that it runs. */
export function hasPreloads(): boolean {
  const options = wordsOfOptions(process.env['NODE_OPTIONS'] ?? '').map(({ value }) => value);
  return [...process.execArgv, ...options].some((word) => preloadFlags.test(word));
}

/**
 * Returns `env` for a worker: without the options in `NODE_OPTIONS` that would run the program there again.
 */
export function inheritedEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const { NODE_OPTIONS: text = '' } = env;
  const words = wordsOfOptions(text);
  const kept = groups(words, ({ value }) => value).filter(
    (group) => !loadsProgram(group.map(({ value }) => value)),
  );
  if (kept.flat().length === words.length) return env;
  return {
    ...env,
    NODE_OPTIONS: kept
      .flat()
      .map((word) => word.text)
      .join(' '),
  };
}

/** A word of `NODE_OPTIONS`: as written there, and as Node reads it. */
interface OptionWord {
  text: string;
  value: string;
}

/**
 * Splits as Node does: at spaces, except between double quotes, where a backslash escapes any character.
 */
function wordsOfOptions(options: string): OptionWord[] {
  const words: OptionWord[] = [];
  for (const [text] of options.matchAll(/(?:[^ "]|"(?:\\.|[^"\\])*"?)+/gs)) {
    const value = text.replace(/"((?:\\.|[^"\\])*)"?/gs, (_, quoted: string) =>
      quoted.replace(/\\(.)/gs, '$1'),
    );
    words.push({ text, value });
  }
  return words;
}

function withValues(execArgv: readonly string[], isMeant: (flag: string) => boolean): string[] {
  return groups(execArgv, String)
    .filter((words) => isMeant(words[0] ?? '') && !loadsProgram(words))
    .flat();
}

/**
 * Groups each flag with its values: a word without a dash belongs to the flag before it, and is no
 * program's name.
 */
function groups<Word>(words: readonly Word[], textOf: (word: Word) => string): Word[][] {
  const found: Word[][] = [];
  for (const word of words) {
    const last = found.at(-1);
    if (last === undefined || textOf(word).startsWith('-')) found.push([word]);
    else last.push(word);
  }
  return found;
}

/** True: an `--import ./app.mjs` that starts tasks; each worker would run the program once more. */
function loadsProgram(words: readonly string[]): boolean {
  const [, value = words[1]] = /^--(?:import|require)=(.*)$/s.exec(words[0] ?? '') ?? [];
  return value !== undefined && preloadFlags.test(words[0] ?? '') && isProgramPreload(value);
}

const preloadFlags = /^(?:-r|--require|--import)(?:=|$)/;

/** Returns the first file or module that a flag of `execArgv` names and that is missing, with that flag. */
export function missingFileOf(execArgv: readonly string[]): string | undefined {
  for (const [flag = '', next = ''] of groups(execArgv, String)) {
    const [, name = flag, value = next] = /^(--[^=]+)=(.*)$/s.exec(flag) ?? [];
    const isThere = lookups.get(name);
    if (isThere !== undefined && value !== '' && !isThere(value)) return `${value} of ${name}`;
  }
  return undefined;
}

function isFileThere(value: string): boolean {
  return existsSync(value.startsWith('file:') ? fileURLToPath(value) : resolve(value));
}

/** Resolves as `import()` does: a package, or a URL of another kind, may be anywhere. */
function isImportThere(value: string): boolean {
  return !/^(?:\.{0,2}\/|file:)/.test(value) || isFileThere(value);
}

function isRequireThere(value: string): boolean {
  try {
    createRequire(join(process.cwd(), '/')).resolve(value);
    return true;
  } catch {
    return false;
  }
}

/** Finds the file that a flag names, as Node does. */
const lookups: ReadonlyMap<string, (value: string) => boolean> = new Map([
  ['--env-file', isFileThere],
  ['--experimental-loader', isImportThere],
  ['--import', isImportThere],
  ['--loader', isImportThere],
  ['--require', isRequireThere],
  ['-r', isRequireThere],
]);

function isOwnFlag(flag: string): boolean {
  return ownFlags.has(flag) || ownFlagPrefixes.some((prefix) => flag.startsWith(prefix));
}
