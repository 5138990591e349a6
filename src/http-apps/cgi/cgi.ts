// CGI programs of a folder over HTTP, RFC 3875: environment.ts makes their variables, head.ts parses the head
// of their output, program.ts starts and reads them, run.ts connects one with its request.

import { once } from 'node:events';
import { constants, type Stats } from 'node:fs';
import { access, realpath, stat } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { integerOption, invalid, type Readers, readOptions, strings } from '../../lib/index.js';
import { answerStatus, type FolderListener, isInside, realFolder } from '../folder-listener.js';
import { targetOf } from '../target.js';
import type { CgiRequest, CgiScript } from './environment.js';
import { isRaw, Run, warnOf } from './run.js';

export interface CgiOptions {
  /** URL path of the programs, as `/cgi-bin/`. Default: `/`. */
  readonly prefix?: string | undefined;
  /** Additional environment variables of the programs. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** A program that neither reads nor writes within this time is ended, in ms. Default: 60,000. */
  readonly timeoutMs?: number | undefined;
  /** Maximum of programs that run at a time; further requests get 503. Default: 100. */
  readonly maxPrograms?: number | undefined;
  /** DOCUMENT_ROOT of the programs, and the folder of PATH_TRANSLATED. Default: the folder of the programs. */
  readonly documentRoot?: string | URL | undefined;
}

const maxInt = 2 ** 31 - 1;
/** Maximum of redirects that one request may take inside: Apache's limit. */
const maxRedirects = 10;

interface Settings {
  /** Path with all links resolved. */
  readonly root: string;
  readonly prefix: string;
  readonly env: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly maxPrograms: number;
  readonly documentRoot: string;
}

/** Redirects of each request so far, also between the listeners of several folders. */
const redirects = new WeakMap<IncomingMessage, number>();

/**
 * A request listener for the programs in `root`: the first part of the path that is an executable file
 * runs, and the rest is its PATH_INFO. Throws `OPTION_INVALID`.
 *
 * A redirect to a path of this server is followed inside (6.2.2): by the programs here, else by `next`, which gets
 * the request with the new URL. Without `next`, one to a path outside of `prefix` goes to the client.
 */
export function serveCgi(root: string | URL, options: CgiOptions = {}): FolderListener {
  const settings = fill(root, options);
  let running = 0;
  const serve: AsyncListener = async (request, response, next) => {
    const target = targetOf(request.url ?? '/');
    const script = target === undefined ? 400 : await scriptOf(settings, target.local);
    if (typeof script === 'number') {
      if (script === 404 && next !== undefined) next();
      else answerStatus(response, script);
      return;
    }
    if (isRaw(script.file) && !(await hasConnection(request, response, script.file))) return;
    if (running >= settings.maxPrograms) {
      answerStatus(response, 503, { 'Retry-After': '1' });
      return;
    }
    running += 1;
    const mount = mountOf(request);
    const hasBody = !redirects.has(request);
    const run = new Run({ ...settings, hasBody }, request, response);
    const asked = requestOf(request, target?.authority, settings.documentRoot);
    const location = await run
      .start({ ...script, name: mount + script.name }, asked)
      .finally(() => {
        running -= 1;
      });
    if (location === undefined || response.destroyed) return;
    const count = (redirects.get(request) ?? 0) + 1;
    redirects.set(request, count);
    const local = location.slice(mount.length);
    const isOurs = location.startsWith(mount) && local.startsWith('/');
    if (count > maxRedirects) {
      warnOf(script.file, `has redirected a request that was redirected ${maxRedirects} times`);
      answerStatus(response, 500);
    } else if (!isOurs || (next === undefined && !local.startsWith(settings.prefix))) {
      response.writeHead(302, { Location: location, 'Content-Length': 0 }).end();
    } else {
      if (target?.authority !== undefined) request.headers.host = target.authority;
      redirect(request, local, location);
      await serve(request, response, next);
    }
  };
  return (request, response, next) => {
    void serve(request, response, next).catch(() => response.destroy());
  };
}

type AsyncListener = (...given: Parameters<FolderListener>) => Promise<void>;

/** Makes the request one for another path, without a body. */
function redirect(request: IncomingMessage, local: string, whole: string): void {
  if (request.method !== 'HEAD') request.method = 'GET';
  for (const name of ['content-length', 'content-type', 'transfer-encoding', 'content-encoding']) {
    delete request.headers[name];
  }
  request.url = local;
  if (Reflect.has(request, 'originalUrl')) Reflect.set(request, 'originalUrl', whole);
}

/** Path and query as the client has sent them: Connect and Express remove the path of a mount from `url`. */
function sentUrl(request: IncomingMessage): string {
  const original: unknown = Reflect.get(request, 'originalUrl');
  const url = typeof original === 'string' ? original : (request.url ?? '/');
  return targetOf(url)?.local ?? '/';
}

/** Path of the mount in Connect or Express; `''`: none. */
function mountOf(request: IncomingMessage): string {
  const local = targetOf(request.url ?? '/')?.local ?? '/';
  const sent = sentUrl(request);
  return sent.endsWith(local) ? sent.slice(0, sent.length - local.length) : '';
}

/**
 * Waits until a response has its connection, on which earlier responses may be pending. Resolves with false, and
 * answers where it can, when there will be none.
 */
async function hasConnection(
  request: IncomingMessage,
  response: ServerResponse,
  file: string,
): Promise<boolean> {
  if (request.httpVersionMajor !== 1) {
    warnOf(file, 'needs a client of HTTP/1: its name begins with nph-');
    answerStatus(response, 502);
    return false;
  }
  if (response.socket !== null) return true;
  const gone = new AbortController();
  const left = once(request.socket, 'close', { signal: gone.signal }).catch(() => {});
  await Promise.race([once(response, 'socket', { signal: gone.signal }).catch(() => {}), left]);
  gone.abort();
  return response.socket !== null;
}

const readers = {
  prefix: (name, prefix = '/') => {
    if (/^\/(.*\/)?$/s.test(prefix)) return prefix;
    throw invalid(name, prefix, 'a path like "/cgi-bin/"');
  },
  env: (name, env = {}) => {
    strings(name, Object.values(env));
    return env;
  },
  timeoutMs: integerOption(60_000, 1, maxInt),
  maxPrograms: integerOption(100, 1, maxInt),
  documentRoot: (name, folder) => (folder === undefined ? undefined : realFolder(folder, name)),
} satisfies Readers<CgiOptions>;

function fill(root: string | URL, given: CgiOptions): Settings {
  const options = readOptions('the options of serveCgi', given, readers);
  const real = realFolder(root);
  return { ...options, root: real, documentRoot: options.documentRoot ?? real };
}

/** Finds the program that a URL names, or the status of the refusal. */
async function scriptOf(settings: Settings, url: string): Promise<CgiScript | number> {
  const { root, prefix } = settings;
  const [encoded = '/'] = url.split(/[?#]/);
  if (!encoded.startsWith(prefix)) return 404;
  let path: string;
  try {
    path = decodeURIComponent(encoded.slice(prefix.length));
  } catch {
    return 400;
  }
  const parts = path.split('/');
  if (path.includes('\0') || parts.includes('..')) return 400;
  if (parts.some((part) => part.startsWith('.'))) return 404; // hidden, as in serveStatic
  for (let count = 1; count <= parts.length; count += 1) {
    const file = join(root, ...parts.slice(0, count));
    const found = await statOf(file);
    if (found === undefined) return 404;
    if (found.isDirectory()) continue;
    const real = await realpath(file);
    if (!found.isFile() || !isInside(root, real)) return 404;
    if (!(await isExecutable(file))) return 403;
    const rest = parts.slice(count);
    return {
      file,
      name: prefix + parts.slice(0, count).join('/'),
      pathInfo: rest.length === 0 ? '' : `/${rest.join('/')}`,
    };
  }
  return 404;
}

async function statOf(path: string): Promise<Stats | undefined> {
  try {
    return await stat(path);
  } catch {
    return undefined;
  }
}

async function isExecutable(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function requestOf(
  request: IncomingMessage,
  authority: string | undefined,
  documentRoot: string,
): CgiRequest {
  const { method = 'GET', httpVersion, headers, socket } = request;
  const uri = sentUrl(request);
  return {
    method,
    httpVersion,
    headers,
    // HTTP/2 names it differently.
    host: authority ?? String(headers[':authority'] ?? headers.host ?? ''),
    uri,
    query: /\?([^#]*)/s.exec(uri)?.[1] ?? '',
    documentRoot,
    remoteAddress: socket.remoteAddress ?? '',
    remotePort: socket.remotePort,
    serverAddress: socket.localAddress ?? '',
    serverPort: socket.localPort ?? 0,
    isSecure: 'encrypted' in socket,
  };
}
