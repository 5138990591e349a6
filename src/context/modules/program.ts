// The modules that no worker may load: the program's entry, as Node resolved it, modules of the user that
// start tasks while they load, and modules that load one of those. A worker that imported one would run the
// program once more. Their definitions travel by value instead. Where that is not detected here, the worker
// itself refuses the entry (guard.ts).
// Not here: what a module evaluates (at-load.ts), references by name (references.ts).

import { realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { isCopied } from './copies.js';
import { fileText } from './file-text.js';
import { mainFile } from './main-module.js';
import { evaluatedAt, filesBehind, filesLoadedBy, usesManycore } from './own-modules.js';
import { bareUrl, isOwn, noteProgramPackage } from './resolve-module.js';

const require = createRequire(import.meta.url);

/** The URLs of each entry that `process.argv[1]` has named so far. */
const entries = new Map<string, readonly string[]>();
let lastEntry: string | undefined;
const ofProgram = new Set<string>();
const verdicts = new Map<string, boolean>();

/**
 * True: a worker must not load the module at `url`: the program, a module that starts tasks or leads to
 * these, or one that is copied.
 */
export function isProgram(url: string): boolean {
  const bare = bareUrl(url);
  if (isCopied(bare)) return true;
  if (isEntry(bare)) return true;
  const known = verdicts.get(bare);
  if (known !== undefined) return known;
  const isFound = isOwn(bare) && leadsToProgram(bare);
  verdicts.set(bare, isFound);
  return isFound;
}

/** True: Node was started with the file at `url`. */
export function isEntry(url: string): boolean {
  noteEntry();
  const bare = bareUrl(url);
  return ofProgram.has(bare) || (ofNoFile.test(bare) && fileText(bare) === undefined);
}

/** The URL of an ES module that is no file: of `--eval`, or from stdin. */
const ofNoFile = /\/\[eval\d+\]$/;

/** True: loading the module at `url` again only defines its exports. */
export function isDeclarative(url: string): boolean {
  return !isOwn(url) || evaluatedAt(bareUrl(url))?.acts === false;
}

/** Notes that each of `urls` names the program: in a worker, on the message of its parent. */
export function noteProgram(urls: readonly string[]): void {
  for (const url of urls) {
    ofProgram.add(url);
    noteProgramPackage(url);
  }
  verdicts.clear();
}

/** The running program, for its workers. */
export interface ProgramFiles {
  readonly urls: readonly string[];
  /** `mainFile()`; '': there is none. */
  readonly main: string;
}

export function programFiles(): ProgramFiles {
  noteEntry();
  return { urls: [...ofProgram], main: mainFile() ?? '' };
}

/** `process.argv[1]` may be a folder, a name without an extension, a link, and changes in a server. */
function noteEntry(): void {
  const path = process.argv[1];
  const filename = mainFile();
  const key = `${path}\n${filename}`;
  if (key === lastEntry) return;
  lastEntry = key;
  if (entries.has(key)) return;
  const found = [path, filename].flatMap((each) => (each === undefined ? [] : urlsOf(each)));
  entries.set(key, found);
  noteProgram(found);
}

/** The URL of the file that Node runs for `path`, under its own name and its real one. */
function urlsOf(path: string): string[] {
  try {
    const file = require.resolve(path);
    return [pathToFileURL(file).href, pathToFileURL(realpathSync(file)).href];
  } catch {
    return []; // there is none: REPL, --eval
  }
}

/** True: loading the module at `url` comes to the program, or to a module that starts tasks. */
function leadsToProgram(url: string): boolean {
  const behind = filesBehind(url);
  const seen = new Set([url]);
  const isFound = [...behind].some((each) => isEntry(each) || usesManycore(each));
  // Only modules with such a file behind them are parsed.
  for (const each of isFound ? seen : []) {
    if (isEntry(each) || isStarter(each) || verdicts.get(each) === true) return true;
    if (verdicts.get(each) === false) continue;
    for (const loaded of filesLoadedBy(each)) seen.add(loaded);
  }
  for (const each of isFound ? seen : behind) verdicts.set(each, false);
  return false;
}

/** True: loading the module at `url` loads the program. */
export function leadsToEntry(url: string): boolean {
  if (!isEntry(url) && ![...filesBehind(url)].some(isEntry)) return false;
  const seen = new Set([url]);
  for (const each of seen) {
    if (isEntry(each)) return true;
    for (const loaded of filesLoadedBy(each)) seen.add(loaded);
  }
  return false;
}

/** True: the module at `url` acts while it loads, and it or an import of it can start tasks. */
function isStarter(url: string): boolean {
  return evaluatedAt(url)?.acts === true && [...filesBehind(url)].some(usesManycore);
}
