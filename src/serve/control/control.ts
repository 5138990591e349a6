// Control of a running server: HTTP over a Unix socket in a private folder, for the same user's
// `manycore status`, `reload` and `scale`; and, if enabled, the status alone as a page over TCP. remote.ts is
// the client of the socket.

import { rmSync } from 'node:fs';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import { CodedError } from '../../errors.js';
import { messageOf, nodeHttp, socketPath } from '../../lib/index.js';
import type { Range, StatusAddress } from '../options.js';
import { programStack } from '../process/program-stack.js';
import type { BoundAddress } from '../protocol.js';
import type { LoopStatus } from './status.js';
import { statusPage } from './status-page.js';

/** Status of a server. */
export interface ServerStatus {
  readonly pid: number;
  readonly app: string;
  readonly addresses: readonly BoundAddress[];
  readonly loops: readonly LoopStatus[];
}

export interface Controlled {
  readonly status: () => ServerStatus;
  readonly reload: () => Promise<void>;
  readonly scale: (processes: number | Range) => Promise<void>;
}

/** Names of the private sockets on which servers answer the same user. */
export const privateSocketNames = /^serve-\d+(\.\d+)?\.sock$/;

let opened = 0;

/** Returns the path for the next server of this process. */
function nextControlPath(): string {
  opened += 1;
  const suffix = opened === 1 ? '' : `.${opened}`;
  return socketPath(`serve-${process.pid}${suffix}.sock`);
}

export class Control {
  readonly #server: Controlled;
  readonly #open: Server[] = [];
  #path: string | undefined;

  constructor(server: Controlled) {
    this.#server = server;
  }

  /** Listens on the private socket. Rejects with `SERVE_CONTROL_FAILED`, `RUNTIME_FOLDER_REFUSED`. */
  async listenForUser(): Promise<void> {
    const path = nextControlPath();
    rmSync(path, { force: true }); // left by an earlier process with this pid
    await this.#listen(
      nodeHttp().createServer((request, response) => void this.#answer(request, response)),
      { path },
    );
    this.#path = path;
  }

  /** Serves the status page; resolves with its port. Rejects with `SERVE_CONTROL_FAILED`. */
  async listenForStatus({ host, port }: StatusAddress): Promise<number> {
    const server = nodeHttp().createServer((request, response) => this.#show(request, response));
    await this.#listen(server, { host, port });
    const address = server.address();
    return typeof address === 'object' && address !== null ? address.port : port;
  }

  async #listen(server: Server, at: { path: string } | StatusAddress): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      server.once('error', (cause) => {
        const where = 'path' in at ? at.path : `${at.host}:${at.port}`;
        const message = `cannot serve the status at ${where}: ${messageOf(cause)}`;
        reject(new CodedError('SERVE_CONTROL_FAILED', message, { cause }));
      });
      server.listen({ ...at, exclusive: true }, resolve);
    });
    server.unref();
    this.#open.push(server);
  }

  /** Answers with the status; changes nothing. */
  #show(request: IncomingMessage, response: ServerResponse): void {
    const path = pathOf(request);
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      reply(response, 405, { message: 'only GET' });
    } else if (path === '/status' || path === '/status.json') {
      reply(response, 200, this.#server.status());
    } else if (path === '/') {
      response.setHeader('Content-Type', 'text/html; charset=utf-8');
      response.setHeader('Cache-Control', 'no-store');
      response.setHeader(
        'Content-Security-Policy',
        "default-src 'none'; style-src 'unsafe-inline'",
      );
      response.end(statusPage(this.#server.status()));
    } else {
      reply(response, 404, { message: 'there are / and /status.json' });
    }
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== 'POST') {
      this.#show(request, response);
      return;
    }
    try {
      const path = pathOf(request);
      if (path === '/reload') await this.#server.reload();
      else if (path === '/scale') await this.#server.scale(processesOf(await json(request)));
      else {
        reply(response, 404, { message: 'there are /reload and /scale' });
        return;
      }
      reply(response, 200, this.#server.status());
    } catch (error) {
      const { code }: { code?: unknown } = Object(error);
      reply(response, 500, { message: messageOf(error), code, stack: programStack(error) });
    }
  }

  close(): void {
    for (const server of this.#open) {
      server.close();
      server.closeAllConnections();
    }
    if (this.#path !== undefined) rmSync(this.#path, { force: true });
  }
}

function pathOf(request: IncomingMessage): string {
  return (request.url ?? '/').replace(/\?.*$/s, '');
}

/** Extracts the sizes; `scale` validates them. */
function processesOf(body: unknown): number | Range {
  const { processes = 0 }: { processes?: number | Range } = Object(body);
  return processes;
}

function reply(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, {
    'Content-Type': 'application/json',
    'Cache-Control': 'no-store',
  });
  response.end(`${JSON.stringify(body)}\n`);
}
