// Modules of the user's own (files, `data:` URLs), and which of them each loads in turn. Packages are left
// out: they neither start tasks of the user nor import the program. Reading and parsing every module of a
// large program would take longer than a call. So a pattern that over-approximates searches the texts first,
// and a text without a match is not parsed.

import { sendingHalf } from '../late.js';
import type { AtLoad } from '../text/at-load.js';
import { fileText } from './file-text.js';
import { isObserver, isOurs, isOwn, urlOfMentioned, urlOfModule } from './resolve-module.js';

/**
 * True: `url`, a module that `specifier` names, starts tasks for a module that loads it. Metrics and traces
 * do not.
 */
function isUse(specifier: string, url: string | undefined): boolean {
  if (/^manycore(?:\/serve)?$/.test(specifier)) return true;
  return url !== undefined && isOurs(url) && !isObserver(url);
}

/** Quoted texts that may be specifiers, also behind a quote in a comment: the closing one is tried, too. */
const quoted = /['"`](?=((?:\.{0,2}\/|\.{1,2}(?=['"`])|#|file:|@?[\w-])[^'"`\n]*)['"`])/g;

interface Mentioned {
  readonly files: readonly string[];
  readonly usesManycore: boolean;
}

const mentions = new Map<string, Mentioned>();

function mentionedIn(url: string): Mentioned {
  const known = mentions.get(url);
  if (known !== undefined) return known;
  const files = new Set<string>();
  let usesManycore = false;
  const text = fileText(url) ?? '';
  const found = [...text.matchAll(quoted)].map(([, specifier = '']) => specifier);
  // A `data:` URL may have quotes in it.
  if (/['"`]data:/.test(text)) found.push(...sourcesOf(url));
  for (const specifier of found) {
    const target = urlOfMentioned(specifier, url);
    usesManycore ||= isUse(specifier, target);
    if (target !== undefined && isOwn(target)) files.add(target);
  }
  const made = { files: [...files], usesManycore };
  mentions.set(url, made);
  return made;
}

/** Files beyond this number are not searched. */
const maxFiles = 1000;

/**
 * The user's files that loading the one at `url` may load, itself included: by their texts, so possibly more.
 */
export function filesBehind(url: string): ReadonlySet<string> {
  const seen = new Set([url]);
  for (const each of seen) {
    if (seen.size > maxFiles) break;
    for (const file of mentionedIn(each).files) seen.add(file);
  }
  return seen;
}

/** True: the module at `url` imports a module that starts tasks or servers. */
export function usesManycore(url: string): boolean {
  if (!mentionedIn(url).usesManycore) return false;
  return sourcesOf(url).some((each) => isUse(each, urlOfMentioned(each, url)));
}

/** The specifiers of what the file at `url` imports. */
function sourcesOf(url: string): readonly string[] {
  return [...(sendingHalf().analysisOf(url)?.sources ?? [])];
}

/** The code that loading the file at `url` evaluates; `undefined`: unreadable, large, or not JavaScript. */
export function evaluatedAt(url: string): AtLoad | undefined {
  const { analysisOf, atLoad } = sendingHalf();
  const analysis = analysisOf(url);
  return analysis && atLoad(analysis, /\.[mc]?tsx?$/.test(url));
}

/** The user's files that loading the one at `url` loads next. */
export function filesLoadedBy(url: string): readonly string[] {
  const found = [...(evaluatedAt(url)?.loads ?? [])].map((each) =>
    each.startsWith('data:') ? urlOfMentioned(each, url) : urlOfModule(each, url),
  );
  return found.filter((each): each is string => each !== undefined && isOwn(each));
}
