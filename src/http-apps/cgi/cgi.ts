// CGI programs of a folder over HTTP, RFC 3875: environment.ts makes their variables, head.ts parses the head
// of their output, program.ts runs them. Requests and responses stream, with backpressure both ways.

import { constants, type Stats } from 'node:fs';
import { access, realpath, stat } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { dirname, join } from 'node:path';
import {
  integerOption,
  invalid,
  messageOf,
  type Readers,
  readOptions,
  strings,
} from '../../lib/index.js';
import { answerStatus, type FolderListener, isInside, realFolder } from '../folder-listener.js';
import { type CgiScript, metaVariables } from './environment.js';
import { type CgiHead, CgiHeadReader } from './head.js';
import { CgiProgram } from './program.js';

export interface CgiOptions {
  /** URL path of the programs, as `/cgi-bin/`. Default: `/`. */
  readonly prefix?: string | undefined;
  /** Additional environment variables of the programs. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** A program that neither reads nor writes within this time is ended, in ms. Default: 60,000. */
  readonly timeoutMs?: number | undefined;
  /** Maximum of programs that run at a time; further requests get 503. Default: 100. */
  readonly maxPrograms?: number | undefined;
}

const maxInt = 2 ** 31 - 1;

interface Settings {
  /** Path with all links resolved. */
  readonly root: string;
  readonly prefix: string;
  readonly env: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly maxPrograms: number;
}

/**
 * A request listener for the programs in `root`: the first part of the path that is an executable file
 * runs, and the rest is its PATH_INFO. Throws `OPTION_INVALID`.
 *
 * A redirect to a path of this server goes to the client; in RFC 3875, 6.2.2, the server follows it by
 * itself. A query without `=` is not split into arguments (4.4).
 */
export function serveCgi(root: string | URL, options: CgiOptions = {}): FolderListener {
  const settings = fill(root, options);
  let running = 0;
  return (request, response, next) => {
    const serve = async (): Promise<void> => {
      const script = await scriptOf(settings, request.url ?? '/');
      if (typeof script === 'number') {
        if (script === 404 && next !== undefined) next();
        else answerStatus(response, script);
      } else if (running >= settings.maxPrograms) {
        answerStatus(response, 503, { 'Retry-After': '1' });
      } else {
        running += 1;
        const run = new Run(settings, request, response);
        await run.start(script).finally(() => {
          running -= 1;
        });
      }
    };
    void serve().catch(() => response.destroy());
  };
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
} satisfies Readers<CgiOptions>;

function fill(root: string | URL, given: CgiOptions): Settings {
  return { root: realFolder(root), ...readOptions('the options of serveCgi', given, readers) };
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
      root,
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

/** Answers with a status, instead of the program's headers. */
function refuse(response: ServerResponse, status: number): void {
  for (const name of response.getHeaderNames()) response.removeHeader(name);
  answerStatus(response, status);
}

interface Failure {
  /** Status for the client, if no head was sent yet. */
  readonly status: number;
  /** Text of the warning, behind the program's path. */
  readonly why: string;
}

/** One request and its program. */
class Run {
  readonly #settings: Settings;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #head = new CgiHeadReader();
  #program: CgiProgram | undefined;
  #timer: NodeJS.Timeout | undefined;
  #length = Infinity;
  #written = 0;
  #file = '';
  /** Reason of an incomplete response. */
  #failure: Failure | undefined;

  constructor(settings: Settings, request: IncomingMessage, response: ServerResponse) {
    this.#settings = settings;
    this.#request = request;
    this.#response = response;
  }

  /** Resolves when the program has ended. */
  async start(script: CgiScript): Promise<void> {
    this.#file = script.file;
    const options = {
      path: script.file,
      env: metaVariables(requestOf(this.#request), script, this.#settings.env),
      folder: dirname(script.file),
    };
    const listeners = {
      onOutput: (chunk: Buffer) => this.#receive(chunk),
      onEnd: (status: number | undefined) => this.#end(status),
    };
    try {
      this.#program = await CgiProgram.start(options, listeners);
    } catch (error) {
      // The file itself exists.
      const hint = /ENOENT|No such file/.test(messageOf(error))
        ? ' (the interpreter in its first line?)'
        : '';
      this.#warn(`cannot be started: ${messageOf(error)}${hint}`);
      refuse(this.#response, 502);
      return;
    }
    this.#response.once('close', () => {
      if (!this.#response.writableFinished) this.#program?.end();
    });
    this.#response.on('drain', () => {
      this.#wait();
      this.#program?.resume();
    });
    if (this.#response.destroyed) this.#program.end(); // the client has disconnected meanwhile
    this.#request.on('data', () => this.#wait());
    this.#request.pipe(this.#program.input);
    this.#program.input.once('close', () => {
      this.#request.unpipe();
      this.#request.resume();
    });
    this.#wait();
    await this.#program.exited;
  }

  #wait(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#fail(504, `has neither read nor written for ${this.#settings.timeoutMs} ms`);
    }, this.#settings.timeoutMs);
  }

  #receive(chunk: Buffer): boolean {
    this.#wait();
    if (this.#failure !== undefined || this.#response.destroyed) return true; // read, to its end
    if (this.#response.headersSent) return this.#write(chunk);
    try {
      const complete = this.#head.push(chunk);
      if (complete === undefined) return true;
      this.#writeHead(complete.head);
      return complete.rest.length === 0 || this.#write(complete.rest);
    } catch (error) {
      this.#fail(502, `answers with a wrong head: ${messageOf(error)}`);
      return true;
    }
  }

  /** Sends no byte beyond the announced length: it would be read as the next response. */
  #write(chunk: Buffer): boolean {
    this.#written += chunk.length;
    if (this.#written > this.#length) {
      this.#fail(502, `writes more than its Content-Length of ${this.#length}`);
      return true;
    }
    return this.#response.write(chunk);
  }

  #writeHead({ status, length, headers }: CgiHead): void {
    for (const [name, value] of headers) this.#response.appendHeader(name, value);
    if (length !== undefined) {
      this.#length = length;
      this.#response.setHeader('Content-Length', length);
    }
    this.#response.writeHead(status);
    this.#response.flushHeaders();
  }

  #fail(status: number, why: string): void {
    if (this.#failure === undefined) {
      this.#failure = { status, why };
      this.#warn(why);
    }
    this.#program?.end();
  }

  #warn(why: string): void {
    process.emitWarning(`${this.#file} ${why}`, 'CgiWarning');
  }

  /** Handles the end of the output; a program that has closed it may run on for a while. */
  #end(status: number | undefined): void {
    clearTimeout(this.#timer);
    if (status === undefined)
      setTimeout(() => this.#program?.end(), this.#settings.timeoutMs).unref();
    const response = this.#response;
    const wasKilled = status !== undefined && (status & 0x7f) !== 0;
    if (response.headersSent) {
      // Truncated responses must not appear complete.
      const isShort = this.#written < this.#length && this.#length !== Infinity;
      const { statusCode, req } = response;
      const hasBody = req.method !== 'HEAD' && statusCode !== 204 && statusCode !== 304;
      if (wasKilled || this.#failure !== undefined || (isShort && hasBody)) response.destroy();
      else response.end();
    } else if (!response.destroyed) {
      if (this.#failure === undefined) this.#warn('has ended before its head was complete');
      refuse(response, this.#failure?.status ?? 502);
    }
  }
}

function requestOf(request: IncomingMessage) {
  const { method = 'GET', httpVersion, headers, url = '/', socket } = request;
  return {
    method,
    httpVersion,
    headers,
    query: /\?([^#]*)/s.exec(url)?.[1] ?? '',
    remoteAddress: socket.remoteAddress ?? '',
    serverPort: socket.localPort ?? 0,
    isSecure: 'encrypted' in socket,
  };
}
