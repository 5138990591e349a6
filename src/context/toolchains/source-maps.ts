// From a place in the code that V8 runs to the source that the user wrote.

import { findSourceMap, SourceMap } from 'node:module';
import { bareUrl } from '../modules/resolve-module.js';

/** Zero-based. */
interface OriginalPlace {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

/**
 * The original of a place in the script `name`; `undefined`: nothing maps it. `running`: the text of that
 * script, if available, whose end may hold a map.
 */
export function originalPlace(
  name: string,
  running: string | undefined,
  line: number,
  column: number,
): OriginalPlace | undefined {
  const map = findSourceMap(name) ?? inlineMapOf(running ?? '');
  const entry = map?.findEntry(line, column);
  if (entry === undefined || !('originalSource' in entry)) return undefined;
  const { originalSource: file, originalLine, originalColumn } = entry;
  if (typeof file !== 'string') return undefined;
  return { file, line: originalLine, column: originalColumn };
}

// In parts: Jest reads the whole, also in a text of ours, as the map of the file that it is in.
const inlineStart = ['//# source', 'MappingURL=data:application/json;'].join('');

/**
 * True: a place of the script `name` maps to another one of the same file, as where a loader compiles in
 * memory. A frame there does not reveal which text it belongs to: the user's, or the loader's output.
 */
export function isMappedInPlace(
  name: string,
  running: string | undefined,
  line: number,
  column: number,
): boolean {
  const found = originalPlace(name, running, line, column);
  return found !== undefined && isSameFile(found.file, name);
}

/** `file`: the source that a map names; a relative one is taken for that of the script `name`. */
export function isSameFile(file: string, name: string): boolean {
  return isRelative(file) || withoutScheme(file) === withoutScheme(name);
}

export function isRelative(file: string): boolean {
  return !/^(?:\/|[a-z-]+:)/.test(file);
}

function withoutScheme(name: string): string {
  return bareUrl(name).replace(/^file:\/\//, '');
}

/** True: the text of a script ends with a map, as a test runner writes it. */
export function hasInlineMap(source: string): boolean {
  return source.includes(inlineStart);
}

/** Node has no maps of code that a test runner has compiled and run by itself. */
function inlineMapOf(source: string): SourceMap | undefined {
  const start = source.lastIndexOf(inlineStart);
  if (start < 0) return undefined;
  const [url = ''] = source.slice(start).split(/[\r\n]/, 1);
  try {
    const json = Buffer.from(url.slice(url.indexOf(',') + 1), 'base64').toString();
    return new SourceMap(JSON.parse(json));
  } catch {
    return undefined; // a comment that only resembles a map
  }
}
