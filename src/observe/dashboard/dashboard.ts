// The web server of `manycore dashboard`: files of the page, and a stream of events for each open page.
// Read-only. Private by default (access.ts). Not here: the events (feed.ts), the page itself (web/, bundled
// into two files).

import { readFileSync } from 'node:fs';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { hostname } from 'node:os';
import { CodedError } from '../../errors.js';
import { integer, messageOf, nodeHttp, ownListening } from '../../lib/index.js';
import { isLoopback } from '../host-names.js';
import { Access } from './access.js';
import { Feed } from './feed.js';
import { userToken } from './token.js';

export interface DashboardOptions {
  readonly host: string;
  /** 0 chooses a free one. */
  readonly port: number;
}

/** Codes of listen errors whose cause is the host, not the port. */
const wrongHost = new Set(['EADDRNOTAVAIL', 'ENOTFOUND', 'EAI_AGAIN', 'EINVAL']);

/** A page with more unsent bytes gets no further events: it sleeps, or its connection is slow. */
const maxUnsentBytes = 2 ** 20;

const headers = {
  'Cache-Control': 'no-store',
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
};

const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>manycore</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="dashboard.css">
<script type="module" src="dashboard.js"></script>
</head>
<body><div id="app"></div><noscript>The dashboard needs JavaScript.</noscript></body>
</html>
`;

interface File {
  readonly type: string;
  readonly content: string | Buffer;
}

export class Dashboard implements Disposable {
  readonly #server: Server;
  readonly #feed = new Feed();
  readonly #files: ReadonlyMap<string, File>;
  #access: Access | undefined;
  /** Address with the token, to be opened once. */
  address = '';
  /** The same for other machines; `undefined`: they cannot connect. */
  addressForOthers: string | undefined;

  private constructor(files: ReadonlyMap<string, File>) {
    this.#files = files;
    this.#server = nodeHttp().createServer((request, response) => this.#answer(request, response));
  }

  /** Rejects with `OPTION_INVALID`, `DASHBOARD_START_FAILED`, `RUNTIME_FOLDER_REFUSED`. */
  static async open(options: DashboardOptions): Promise<Dashboard> {
    const token = userToken();
    const dashboard = new Dashboard(pageFiles());
    await dashboard.#listen(options, token);
    return dashboard;
  }

  async #listen({ host, port }: DashboardOptions, token: string): Promise<void> {
    integer('port', port, 0, 65_535);
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', (cause) => {
        const way = wrongHost.has(Object(cause).code) ? '--host' : '--port';
        const message = `the dashboard cannot listen: ${messageOf(cause)}: give another ${way}, or none`;
        reject(new CodedError('DASHBOARD_START_FAILED', message, { cause }));
      });
      this.#server.listen(ownListening({ host, port }), resolve);
    });
    const bound = this.#server.address();
    const used = typeof bound === 'object' && bound !== null ? bound.port : port;
    this.#access = new Access(token, { host, port: used });
    this.address = `http://${nameOf(host)}:${used}/?token=${token}`;
    if (isLoopback(host)) return;
    this.addressForOthers = `http://${anyHosts.has(host) ? hostname() : nameOf(host)}:${used}/?token=${token}`;
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const target = targetOf(request.url);
    if (target === undefined) {
      refuse(response, 400, 'This is no path of this dashboard: the page is at /.');
      return;
    }
    const verdict = this.#access?.judge(request, target.query) ?? 'refused';
    if (verdict === 'misdirected') {
      refuse(
        response,
        403,
        'This dashboard answers to its address and to localhost, and to no other name.',
      );
    } else if (request.method !== 'GET' && request.method !== 'HEAD') {
      refuse(response, 405, 'This dashboard only shows: it takes GET.');
    } else if (verdict === 'refused') {
      refuse(
        response,
        401,
        'This dashboard needs its token: open the whole address that manycore dashboard has printed.',
      );
    } else if (verdict === 'enters') {
      // An address without the token is safe to show, store and pass on.
      const { setCookie = '', place = '/' } = this.#access ?? {};
      response.writeHead(303, { ...headers, 'Set-Cookie': setCookie, Location: place });
      response.end();
    } else this.#show(target, request, response);
  }

  #show(target: Target, request: IncomingMessage, response: ServerResponse): void {
    const place = this.#access?.place ?? '/';
    const { query } = target;
    const path = target.path.startsWith(place) ? target.path.slice(place.length - 1) : target.path;
    const file = this.#files.get(path);
    if (path === '/events' && request.method === 'GET') this.#stream(query, response);
    else if (file === undefined) refuse(response, 404, 'There is nothing here: the page is at /.');
    else {
      response.writeHead(200, { ...headers, 'Content-Type': file.type });
      response.end(file.content);
    }
  }

  #stream(query: URLSearchParams, response: ServerResponse): void {
    response.writeHead(200, { ...headers, 'Content-Type': 'text/event-stream' });
    response.flushHeaders();
    const pid = Number(query.get('pid') ?? Number.NaN);
    const remove = this.#feed.add({
      pid: Number.isNaN(pid) ? undefined : pid,
      send: (event, data) => {
        if (response.writableLength > maxUnsentBytes) return;
        response.write(`event: ${event}\ndata: ${data}\n\n`);
      },
    });
    response.on('error', () => {});
    response.once('close', remove);
  }

  /** Open pages try to reconnect. */
  [Symbol.dispose](): void {
    this.#feed[Symbol.dispose]();
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

/** Wildcard addresses, which a browser cannot open. */
const anyHosts: ReadonlySet<string> = new Set(['0.0.0.0', '::']);

function nameOf(host: string): string {
  if (anyHosts.has(host)) return 'localhost';
  return host.includes(':') ? `[${host}]` : host;
}

interface Target {
  readonly path: string;
  readonly query: URLSearchParams;
}

/** Parses a request target; `undefined`: malformed. Not by `URL`, which throws for some texts of a client. */
function targetOf(text = ''): Target | undefined {
  const [, path, query] = /^(\/(?!\/)[^?#]*)(?:\?(.*))?$/s.exec(text) ?? [];
  return path === undefined ? undefined : { path, query: new URLSearchParams(query) };
}

function refuse(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { ...headers, 'Content-Type': 'text/plain; charset=utf-8' });
  response.end(`${text}\n`);
}

/**
 * Files of the page: beside this file in the bundle, or in the build's folder when this code is not bundled.
 */
function pageFiles(): Map<string, File> {
  return new Map([
    ['/', { type: 'text/html; charset=utf-8', content: page }],
    [
      '/dashboard.js',
      { type: 'text/javascript; charset=utf-8', content: built('dashboard-page.js') },
    ],
    ['/dashboard.css', { type: 'text/css; charset=utf-8', content: built('dashboard-page.css') }],
  ]);
}

/** The folder of what is built for browsers. */
const bundle = new URL('../../../bundle/', import.meta.url);

function built(name: string): Buffer {
  try {
    return readFileSync(new URL(name, bundle));
  } catch {
    // It is not built.
  }
  throw new CodedError(
    'DASHBOARD_START_FAILED',
    `the dashboard's page (${name}) is not in this copy of manycore: build it with npm run build`,
  );
}
