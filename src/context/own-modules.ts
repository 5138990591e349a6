// Files of the user's own, and which of them loading one loads in turn. Packages are left out: they neither start
// tasks of the user nor import the program.
// Reading and parsing every module of a large program would take longer than a call. So a pattern that finds more
// than there is looks through the texts first, and what it finds nothing in is not parsed.

import { type AtLoad, atLoad } from './at-load.js';
import { isOfUser, urlOfModule } from './reach.js';
import { analysisOf, sourceText } from './scripts.js';

/** With this file in a folder of its own, or in a bundle of all. */
const ownFolder = import.meta.url.replace(/(?:context\/)?[^/]*$/, '');

/** True: a file of the user's, of no package and not of this library. */
export function isOwn(url: string): boolean {
  return isOfUser(url) && !isOurs(url);
}

function isOurs(url: string): boolean {
  // In a bundle of the user's this file is one of theirs.
  return url.startsWith(ownFolder) && isOwnName(ownFolder, 'manycore');
}

/** True: `url`, a module that `specifier` names, starts tasks for whoever loads it. Metrics and traces do not. */
function isUse(specifier: string, url: string | undefined): boolean {
  if (/^manycore(?:\/serve)?$/.test(specifier)) return true;
  return url !== undefined && isOurs(url) && !url.startsWith(`${ownFolder}observe/`);
}

/** The file that `specifier` means for the module at `url`, as `urlOfModule`. Names of packages are not looked for. */
function resolved(url: string, specifier: string): string | undefined {
  const isMeant = /^(?:\.|\/|#|file:)/.test(specifier) || isOwnName(url, specifier);
  return isMeant ? urlOfModule(specifier, url) : undefined;
}

/** By folder of a module: the name of the package that it is in. */
const names = new Map<string, string>();

/** True: `specifier` begins with the name of the package that the module at `url` is in itself. */
function isOwnName(url: string, specifier: string): boolean {
  const folder = url.replace(/[^/]*$/, '');
  let name = names.get(folder);
  if (name === undefined) {
    name = nameOfPackage(folder);
    names.set(folder, name);
  }
  return name !== '' && (specifier === name || specifier.startsWith(`${name}/`));
}

function nameOfPackage(folder: string): string {
  for (let at = new URL('package.json', folder); ; at = new URL('../package.json', at)) {
    const text = sourceText(at.href);
    if (text !== undefined) {
      try {
        const { name } = JSON.parse(text);
        return typeof name === 'string' ? name : '';
      } catch {
        return '';
      }
    }
    if (at.pathname === '/package.json') return '';
  }
}

/** Quoted texts that may be specifiers, also where a quote in a comment comes before: the closing one is tried, too. */
const quoted = /['"`](?=((?:\.{0,2}\/|\.{1,2}(?=['"`])|#|file:|@?[\w-])[^'"`\n]*)['"`])/g;

interface Mentioned {
  readonly files: readonly string[];
  readonly usesUs: boolean;
}

const mentions = new Map<string, Mentioned>();

function mentionedIn(url: string): Mentioned {
  const known = mentions.get(url);
  if (known !== undefined) return known;
  const files = new Set<string>();
  let usesUs = false;
  for (const [, specifier = ''] of (sourceText(url) ?? '').matchAll(quoted)) {
    const target = resolved(url, specifier);
    usesUs ||= isUse(specifier, target);
    if (target !== undefined && isOwn(target)) files.add(target);
  }
  const made = { files: [...files], usesUs };
  mentions.set(url, made);
  return made;
}

/** Further files are not looked at. */
const mostFiles = 1000;

/** The files of the user's that loading the one at `url` may load, and more, with itself: by their texts. */
export function filesBehind(url: string): ReadonlySet<string> {
  const seen = new Set([url]);
  for (const each of seen) {
    if (seen.size > mostFiles) break;
    for (const file of mentionedIn(each).files) seen.add(file);
  }
  return seen;
}

/** True: the module at `url` imports what starts tasks or servers. */
export function usesUs(url: string): boolean {
  if (!mentionedIn(url).usesUs) return false;
  const sources = [...(analysisOf(url)?.sources ?? [])];
  return sources.some((each) => isUse(each, resolved(url, each)));
}

/** What loading the file at `url` evaluates; `undefined`: unreadable, large, or not JavaScript. */
export function evaluatedAt(url: string): AtLoad | undefined {
  const analysis = analysisOf(url);
  return analysis && atLoad(analysis, /\.[mc]?tsx?$/.test(url));
}

/** The files of the user's that loading the one at `url` loads next. */
export function filesLoadedBy(url: string): readonly string[] {
  const found = [...(evaluatedAt(url)?.loads ?? [])].map((each) => urlOfModule(each, url));
  return found.filter((each): each is string => each !== undefined && isOwn(each));
}
