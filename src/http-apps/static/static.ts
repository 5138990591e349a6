// Files of a folder over HTTP. `send`, the package behind Express and Koa, interprets requests (ranges,
// conditions, types, hidden files). Added here: precompressed variants (variants.ts), refusal of links that
// lead out of the folder and of what is no file, strong validators (validators.ts), and large files sent by the
// kernel (send-file.ts).

import {
  closeSync,
  constants,
  createReadStream,
  existsSync,
  fstatSync,
  openSync,
  readlinkSync,
  readSync,
  realpathSync,
  type Stats,
  statSync,
} from 'node:fs';
import { realpath } from 'node:fs/promises';
import type { IncomingMessage, OutgoingHttpHeader, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import send from 'send';
import {
  booleanOption,
  choiceOption,
  integerOption,
  type Readers,
  readOptions,
  string,
} from '../../lib/index.js';
import { answerStatus, type FolderListener, isInside, realFolder } from '../folder-listener.js';
import { targetOf } from '../target.js';
import { listingPage } from './listing.js';
import { plainDescriptor, sendFile } from './send-file.js';
import { isCurrent, setEntityTag } from './validators.js';
import { choose, decoded, describeChoice } from './variants.js';

export interface StaticOptions {
  /** File that is sent for its folder; `false`: none. Default: `index.html`. */
  readonly index?: string | false | undefined;
  /** True: folders without such a file are listed. Default: false. */
  readonly listing?: boolean | undefined;
  /** Names that begin with a dot: `ignore` (404), `deny` (403) or `allow`. Default: `ignore`. */
  readonly dotfiles?: 'allow' | 'deny' | 'ignore' | undefined;
  /** `max-age` for clients' caches, in ms. Default: 0. */
  readonly maxAgeMs?: number | undefined;
  /** True: files never change under their names (`immutable`). Default: false. */
  readonly immutable?: boolean | undefined;
  /** True: `app.js.br` and `app.js.gz` are sent for `app.js` to clients that accept them. Default: true. */
  readonly precompressed?: boolean | undefined;
}

const missing = new Set(['ENOENT', 'ENOTDIR', 'ENAMETOOLONG', 'ELOOP', 'EACCES', 'EPERM', 'ENXIO']);
const hasProc = existsSync('/proc/self/fd');
const maxAllowedAgeMs = 365 * 24 * 3600 * 1000;

const readers = {
  index: (name, index = 'index.html') =>
    index === false ? index : string(name, index, 'the name of a file, or false'),
  listing: booleanOption(false),
  dotfiles: choiceOption(['ignore', 'deny', 'allow']),
  maxAgeMs: integerOption(0, 0, maxAllowedAgeMs),
  immutable: booleanOption(false),
  precompressed: booleanOption(true),
} satisfies Readers<StaticOptions>;

/** Below this a file is read and sent with its header in one call. */
const largeBytes = 2 ** 16;

interface Settings {
  /** Path with all links resolved. */
  readonly root: string;
  readonly index: string | false;
  readonly isListed: boolean;
  readonly hasVariants: boolean;
  readonly send: send.SendOptions;
}

/** A file that is about to be sent whole, with its fields set and not sent. */
export interface SentFile {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly path: string;
  /** Closed once the file is sent. */
  readonly fd: number;
}

/**
 * A request listener for the files in `root`, also as middleware of Connect and Express. Throws
 * `OPTION_INVALID`. Ranges and conditions: RFC 9110.
 */
export function serveStatic(root: string | URL, options: StaticOptions = {}): FolderListener {
  return fileListener(root, options);
}

/** The listener of `serveStatic`; `onWhole` is called before each answer with status 200 and the whole file. */
export function fileListener(
  root: string | URL,
  options: StaticOptions = {},
  onWhole?: (sent: SentFile) => void,
): FolderListener {
  const settings = fill(root, options);
  return (request, response, next) => {
    const vary = response.getHeader('vary');
    const exchange = { settings, request, response, next, vary, onWhole };
    if (request.method === 'GET' || request.method === 'HEAD') {
      try {
        serve(exchange);
      } catch {
        response.destroy();
      }
    } else {
      refuse(exchange, 405, next === undefined ? { Allow: 'GET, HEAD' } : {});
    }
  };
}

/** One request. */
interface Exchange {
  readonly settings: Settings;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly next: (() => void) | undefined;
  /** `Vary` before this listener. */
  readonly vary: OutgoingHttpHeader | undefined;
  readonly onWhole: ((sent: SentFile) => void) | undefined;
}

function fill(root: string | URL, given: StaticOptions): Settings {
  const options = readOptions('the options of serveStatic', given, readers);
  const { index, dotfiles, maxAgeMs: maxAge, immutable } = options;
  const real = realFolder(root);
  return {
    root: real,
    index,
    isListed: options.listing,
    hasVariants: options.precompressed,
    send: { root: real, index, dotfiles, maxAge, immutable },
  };
}

function serve(exchange: Exchange): void {
  const { settings, request, response } = exchange;
  const { root, index } = settings;
  const target = targetOf(request.url ?? '/');
  if (target === undefined) {
    refuse(exchange, 400);
    return;
  }
  const path = target.local.replace(/[?#].*$/s, '');
  const choice = settings.hasVariants
    ? choose(root, index, path, request.headers['accept-encoding'])
    : { path, encoding: undefined, type: undefined };
  const stream = send(request, choice.path, settings.send);
  stream.on('headers', (_response: ServerResponse, _file: string, stats: Stats) => {
    describeChoice(response, choice);
    setEntityTag(response, stats);
  });
  Reflect.set(stream, 'isRangeFresh', () => isCurrent(request.headers['if-range'], response));
  stream.on('error', (error: { status?: number; headers?: Record<string, string> }) => {
    const { status = 500, headers = {} } = error;
    if (status === 404 && path.endsWith('/') && settings.isListed) void list(exchange, path);
    else refuse(exchange, status, headers);
  });
  stream.on('directory', () => {
    if (!path.endsWith('/')) redirectToFolder(exchange);
    else if (settings.isListed) void list(exchange, path);
    else refuse(exchange, 404);
  });
  // Replaces the methods of `send`, which stat, open and read in other threads: the way there and back
  // costs more than a small file. One open file for size, time and bytes, so nothing changes in between.
  const sendOpened = (file: string): void => {
    let fd: number;
    try {
      fd = openInside(root, file);
    } catch (error) {
      stream.error(statusOf(error));
      return;
    }
    let isTaken = false;
    // Called when the response has a body, with headers set and not sent.
    const transfer = (_file: string, { start = 0 }: { start?: number }): void => {
      isTaken = true;
      if (response.statusCode === 200) exchange.onWhole?.({ request, response, path: file, fd });
      void sendBody(exchange, fd, start).catch(() => response.destroy());
    };
    Reflect.set(stream, 'stream', transfer);
    try {
      const stats = fstatSync(fd);
      if (stats.isDirectory()) stream.redirect(file);
      else if (stats.isFile()) stream.send(file, stats);
      else stream.error(404);
    } finally {
      if (!isTaken) closeSync(fd);
    }
  };
  Reflect.set(stream, 'sendFile', sendOpened);
  Reflect.set(stream, 'sendIndex', (folder: string) => sendOpened(join(folder, String(index))));
  stream.pipe(response);
}

/** Status for a file that cannot be opened; errors of `openInside` have no code, unreadable files are 404. */
function statusOf(error: unknown): number {
  const { code }: { code?: string } = Object(error);
  return code === undefined || missing.has(code) ? 404 : 500;
}

/** Sends the body, and closes `fd`. */
async function sendBody({ response }: Exchange, fd: number, start: number): Promise<void> {
  const count = Number(response.getHeader('content-length'));
  try {
    const socketFd = count < largeBytes ? undefined : plainDescriptor(response);
    if (socketFd !== undefined) {
      await sendFile(response, socketFd, fd, start, count);
      response.end();
    } else if (count < largeBytes) {
      response.end(readPart(fd, start, count));
    } else {
      const body = createReadStream('', { fd, start, end: start + count - 1, autoClose: false });
      await pipeline(body, response);
    }
  } finally {
    closeSync(fd);
  }
}

/** Reads in this thread: for a small file that is in the cache, other threads cost more. */
function readPart(fd: number, start: number, count: number): Buffer {
  const buffer = Buffer.allocUnsafe(count);
  let filled = 0;
  while (filled < count) {
    const bytes = readSync(fd, buffer, filled, count - filled, start + filled);
    if (bytes === 0) throw new Error('the file has become shorter');
    filled += bytes;
  }
  return buffer;
}

/**
 * Opens a file or folder first and then resolves its real path, so that no link changes in between. Other kinds
 * are not opened: that would wake the writer of a named pipe, or start a device.
 */
function openInside(root: string, path: string): number {
  const stats = statSync(path);
  if (!stats.isFile() && !stats.isDirectory()) throw new Error('neither a file nor a folder');
  // O_NONBLOCK: does not wait when the file has become a named pipe meanwhile.
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    if (isInside(root, placeOf(fd, path))) return fd;
    throw new Error('a link leads out of the folder');
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

/** Links in a folder's page are relative to it, so its path has to end with a slash. */
function redirectToFolder({ request, response }: Exchange): void {
  // The URL before Express removed the mount path.
  const original: unknown = Reflect.get(request, 'originalUrl');
  const url = typeof original === 'string' ? original : (request.url ?? '/');
  const [path = '/', query] = targetOf(url)?.local.split(/\?(.*)/s) ?? [];
  // Two leading slashes would name another host.
  const location = `${path.replace(/^\/+/, '/')}/${query === undefined ? '' : `?${query}`}`;
  response.writeHead(301, { Location: location, 'Content-Length': 0 }).end();
}

/** Returns the file's real path; with /proc without access to the disk. */
function placeOf(fd: number, path: string): string {
  return hasProc ? readlinkSync(`/proc/self/fd/${fd}`) : realpathSync(path);
}

async function list(exchange: Exchange, path: string): Promise<void> {
  const { settings, request, response } = exchange;
  try {
    const text = decoded(path);
    if (text === undefined) throw new Error('no path');
    const hidesDotfiles = settings.send.dotfiles !== 'allow';
    if (hidesDotfiles && text.split('/').some((part) => part.startsWith('.'))) {
      throw new Error('hidden');
    }
    const folder = await realpath(join(settings.root, text));
    if (!isInside(settings.root, folder)) throw new Error('a link leads out of the folder');
    const body = await listingPage(folder, text, hidesDotfiles);
    response.setHeader('Content-Type', 'text/html; charset=utf-8');
    response.setHeader('Content-Security-Policy', "default-src 'none'");
    response.end(request.method === 'HEAD' ? undefined : body);
  } catch {
    refuse(exchange, 404);
  }
}

/** Headers of a file, removed when it is not sent. */
const fileHeaders = [
  'accept-ranges',
  'cache-control',
  'content-encoding',
  'content-length',
  'content-range',
  'content-type',
  'etag',
  'last-modified',
];

/** Passes requests for missing files to the next listener; answers other errors. */
function refuse(
  { response, next, vary }: Exchange,
  status: number,
  headers: Readonly<Record<string, string>> = {},
): void {
  for (const name of fileHeaders) response.removeHeader(name);
  if (vary === undefined) response.removeHeader('vary');
  else response.setHeader('vary', vary);
  if (next !== undefined && (status === 404 || status === 405)) {
    response.statusCode = 200;
    next();
    return;
  }
  answerStatus(response, status, headers);
}
