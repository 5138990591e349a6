// Shared by the listeners for folders: files (static/) and CGI programs (cgi/).

import { realpathSync, statSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { invalid, messageOf, nodeHttp } from '../lib/index.js';

/** `next`, as in Connect and Express, is called when the folder has nothing for the request. */
export type FolderListener = (
  request: IncomingMessage,
  response: ServerResponse,
  next?: () => void,
) => void;

/** Returns the folder's path with all links resolved. Throws `OPTION_INVALID` with the option's name. */
export function realFolder(root: string | URL, name = 'root'): string {
  const path = root instanceof URL ? fileURLToPath(root) : root;
  try {
    const real = realpathSync(path);
    if (statSync(real).isDirectory()) return real;
  } catch (error) {
    throw invalid(name, path, `an existing folder: ${messageOf(error)}`);
  }
  throw invalid(name, path, 'a folder');
}

/** Expects both paths with all links resolved. */
export function isInside(root: string, path: string): boolean {
  return path === root || path.startsWith(root === sep ? sep : root + sep);
}

/** Answers with a status and its name. */
export function answerStatus(
  response: ServerResponse,
  status: number,
  headers: Readonly<Record<string, string>> = {},
): void {
  const body = `${nodeHttp().STATUS_CODES[status] ?? 'Internal Server Error'}\n`;
  response.writeHead(status, {
    ...headers,
    'Content-Type': 'text/plain; charset=utf-8',
    'Content-Length': Buffer.byteLength(body),
  });
  response.end(response.req.method === 'HEAD' ? undefined : body);
}
