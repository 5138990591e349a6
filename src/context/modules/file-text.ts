// Texts of modules: of files, and of `data:` URLs.
// Not here: the texts that V8 runs, which a loader may have changed (scripts.ts).

import { readFileSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** The text of the module at `url`; `undefined`: it has none here, or one of more bytes. */
export function readFile(url: string, maxBytes = Number.POSITIVE_INFINITY): string | undefined {
  if (!/^(?:file|data):/.test(url)) return undefined;
  try {
    if (url.startsWith('data:')) return textOfData(url);
    const path = fileURLToPath(url);
    const found = statSync(path);
    // A device or a pipe may have no end, or wait for one; so may a file of the system, whose size is 0.
    if (!found.isFile() || found.size > maxBytes) return undefined;
    return found.size === 0 ? '' : readFileSync(path, 'utf8');
  } catch {
    return undefined; // moved or deleted since: V8 still has it
  }
}

/** The text of the module that a `data:` URL holds, as Node reads it. */
function textOfData(url: string): string | undefined {
  const [, base64, body] =
    /^[^/]+\/[^,;]+[^,]*?(;base64)?,([\s\S]*)$/.exec(new URL(url).pathname) ?? [];
  if (body === undefined) return undefined;
  const text = decodeURIComponent(body);
  return base64 === undefined ? text : Buffer.from(text, 'base64').toString();
}

/** The text of the file at `url`, or of a `data:` URL; `undefined`: unreadable, or large. */
export function fileText(url: string): string | undefined {
  const text = readFile(url, maxFileLength * maxBytesPerUnit);
  return text !== undefined && text.length <= maxFileLength ? text : undefined;
}

/** Sources written by hand are shorter; a bundle takes a second to parse. */
const maxFileLength = 1_000_000;
/** Bytes of UTF-8 for each unit of a text. */
const maxBytesPerUnit = 3;
