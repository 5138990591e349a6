// Precompressed files: `app.js.br` beside `app.js`.

import { statSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import mime from 'mime-types';

/** The file that is sent for a path. */
export interface Choice {
  /** Path of the request, or of the variant's file. */
  readonly path: string;
  readonly encoding: 'br' | 'gzip' | undefined;
  /** Type of the requested file; `undefined` when no variants are searched. */
  readonly type: string | undefined;
}

/** Best compression first. */
const encodings = [
  ['br', '.br'],
  ['gzip', '.gz'],
] as const;

/** Chooses a variant that the client accepts, or the file itself. */
export function choose(
  root: string,
  index: string | false,
  path: string,
  acceptEncoding: string | undefined,
): Choice {
  const full = path.endsWith('/') && index !== false ? path + index : path;
  const file = decoded(full);
  const type = mime.contentType(full.slice(full.lastIndexOf('/') + 1));
  if (type === false || !compressible.test(type) || file === undefined) {
    return { path, encoding: undefined, type: undefined };
  }
  for (const [encoding, suffix] of encodings) {
    if (!isAccepted(encoding, acceptEncoding ?? '')) continue;
    if (isFile(join(root, file + suffix))) return { path: full + suffix, encoding, type };
  }
  return { path, encoding: undefined, type };
}

/** Types that are worth compressing. */
const compressible = /^text\/|[/+](json|javascript|xml|wasm|manifest)\b/;

/** True: the client names the coding and does not forbid it. RFC 9110, 12.5.3. */
function isAccepted(encoding: string, header: string): boolean {
  return header.split(',').some((entry) => {
    const [name = '', ...parameters] = entry.split(';').map((part) => part.trim().toLowerCase());
    return name === encoding && !parameters.some((each) => /^q=0(\.0*)?$/.test(each));
  });
}

/** Decodes a path as `send` does; `undefined` for paths that it refuses. */
export function decoded(path: string): string | undefined {
  try {
    const text = decodeURIComponent(path);
    const isPlain = !text.includes('\0') && !text.split('/').includes('..');
    return isPlain ? text : undefined;
  } catch {
    return undefined;
  }
}

function isFile(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
  } catch {
    return false; // a name that is too long, a file where a folder should be
  }
}

/** Headers of a file that has, or might have, variants. */
export function describeChoice(response: ServerResponse, { encoding, type }: Choice): void {
  if (type === undefined) return;
  response.appendHeader('Vary', 'Accept-Encoding');
  if (encoding === undefined) return;
  response.setHeader('Content-Encoding', encoding);
  response.setHeader('Content-Type', type);
}
