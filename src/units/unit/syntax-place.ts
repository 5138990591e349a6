// The place of a syntax error in the modules of a unit.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { syntaxErrorIn } from '../../context/index.js';

/** The first line of the stack of an error in CommonJS, or of an import of a name that is not exported. */
const firstLine = /^(?:file:\/\/)?(\/[^\n]*:\d+)\n/;

/**
 * Returns `PATH:LINE` for a syntax error that the import of these modules has thrown, from its stack, or found in
 * their text; `undefined`: it is another error, or its place is unknown.
 */
export function syntaxPlace(error: unknown, urls: Iterable<string>): string | undefined {
  if (!(error instanceof SyntaxError)) return undefined;
  const [, place] = firstLine.exec(error.stack ?? '') ?? [];
  if (place !== undefined) return place;
  for (const url of urls) {
    if (!/\.m?js$/.test(url)) continue;
    const path = fileURLToPath(url);
    const text = textOf(path);
    const found = text === undefined ? undefined : syntaxErrorIn(text);
    if (found !== undefined) return `${path}:${found.line}:${found.column}`;
  }
  return undefined;
}

/** Returns `undefined` for a file that is gone, or cannot be read. */
function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
