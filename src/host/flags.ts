// Flags of node that this process was started with, as its hosts have them too.

import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { isProgram } from '../context/index.js';

/** Flags of this process that a host must not repeat; so are their values, up to the next flag. */
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
 * What says which modules are loaded, and how. A worker that is given flags has no others, and it refuses
 * those of V8 and of the whole process, with which Node 26 starts each file of a test run.
 */
const moduleFlags =
  /^(-r|-C|--require|--import|--loader|--experimental-loader|--conditions|--enable-source-maps|--preserve-symlinks|--experimental-strip-types|--experimental-transform-types)(=|$)/;

/** The flags of `execArgv` that make sense in a host as well: loaders, conditions, V8's own. */
export function inheritedFlags(execArgv: readonly string[]): string[] {
  return withValues(execArgv, (flag) => !isOwnFlag(flag));
}

/** Those that a thread can have apart from the flags of its process. */
export function threadFlags(execArgv: readonly string[]): string[] {
  return withValues(execArgv, (flag) => moduleFlags.test(flag));
}

/** True: a thread that inherits these would run the program again, or refuse an entry that is a file. */
export function mustNotRepeat(execArgv: readonly string[]): boolean {
  return groups(execArgv).some(
    (words) => /^--input-type(=|$)/.test(words[0] ?? '') || loadsProgram(words),
  );
}

function withValues(execArgv: readonly string[], isMeant: (flag: string) => boolean): string[] {
  return groups(execArgv)
    .filter((words) => isMeant(words[0] ?? '') && !loadsProgram(words))
    .flat();
}

/** Each flag with its values: a word without a dash belongs to the flag before it, and is no program's name. */
function groups(execArgv: readonly string[]): string[][] {
  const found: string[][] = [];
  for (const word of execArgv) {
    const last = found.at(-1);
    if (last === undefined || word.startsWith('-')) found.push([word]);
    else last.push(word);
  }
  return found;
}

/** `--import ./app.mjs` where that starts tasks: each host would run the program once more. */
function loadsProgram(words: readonly string[]): boolean {
  const [, value = words[1]] = /^--(?:import|require)=(.*)$/.exec(words[0] ?? '') ?? [];
  if (value === undefined || !preloadFlags.test(words[0] ?? '')) return false;
  if (value.startsWith('file:')) return isProgram(value);
  if (!/^\.{0,2}\//.test(value)) return false;
  try {
    // As `-r` finds it, which may leave the extension out.
    return isProgram(pathToFileURL(createRequire(import.meta.url).resolve(resolve(value))).href);
  } catch {
    return false; // Node has said so already
  }
}

const preloadFlags = /^(?:-r|--require|--import)(?:=|$)/;

function isOwnFlag(flag: string): boolean {
  return ownFlags.has(flag) || ownFlagPrefixes.some((prefix) => flag.startsWith(prefix));
}
