// Control of a running server: HTTP over a Unix socket in a private folder, for the same user's
// `manycore status`, `reload` and `scale`; and, if enabled, the status alone as a page over TCP, and the answers
// to probes (health.ts). remote.ts is the client of the socket.

import { rmSync } from 'node:fs';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import { CodedError } from '../../errors.js';
import {
  closeGently,
  messageOf,
  nodeHttp,
  ownListening,
  serverFd,
  socketPath,
} from '../../lib/index.js';
import type { Range, StatusAddress } from '../options.js';
import type { OutputLine } from '../output/lines.js';
import type { RecentLines } from '../output/recent-lines.js';
import { programStack } from '../process/program-stack.js';
import type { BoundAddress } from '../protocol.js';
import { healthAnswer } from './health.js';
import type { LoopStatus } from './status.js';
import { statusPage } from './status-page.js';

/** Status of a server. */
export interface ServerStatus {
  readonly pid: number;
  readonly name: string;
  /** The path of its program. */
  readonly app: string;
  /** In ms since 1970. */
  readonly startedAtMs: number;
  /** Processes that ended, or lost a loop, without having been asked to, or did not start. */
  readonly lostProcesses: number;
  readonly addresses: readonly BoundAddress[];
  readonly loops: readonly LoopStatus[];
}

export interface Controlled {
  readonly status: () => ServerStatus;
  /** Reasons why the server should get no clients; none: it is ready. */
  readonly obstacles: () => readonly string[];
  readonly reload: () => Promise<void>;
  readonly scale: (processes: number | Range) => Promise<void>;
  /** Resolves when no successor starts. Rejects with `SERVE_CLOSED` when one serves in its place. */
  readonly released: () => Promise<void>;
  /** Resolves when it has finished its requests and is closed. */
  readonly stop: () => Promise<void>;
  /** Resolves when another process serves in its place; `undefined` where none can. */
  readonly upgrade: (() => Promise<void>) | undefined;
  /** Lines that it has printed; `undefined` where those go elsewhere. */
  readonly output: RecentLines | undefined;
}

/** Bytes of lines that a reader of logs has not taken. */
const maxUnreadLogs = 8 * 1024 * 1024;

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
  #open: readonly Server[] = [];
  /** True: a successor is ready in its place. */
  #hasLeft = false;
  #status: Server | undefined;
  /** Answers probes until the server has ended. */
  #health: Server | undefined;
  /** Answers that end with the server. */
  readonly #stops = new Set<ServerResponse>();
  #path: string | undefined;

  constructor(server: Controlled) {
    this.#server = server;
  }

  /** Listens on the private socket. Rejects with `SERVE_CONTROL_FAILED`, `RUNTIME_FOLDER_REFUSED`. */
  async listenForUser(): Promise<void> {
    const path = nextControlPath();
    rmSync(path, { force: true }); // left by an earlier process with this pid
    const server = nodeHttp().createServer((request, response) => {
      void this.#answer(request, response);
    });
    await listen(server, { path }, 'the status');
    this.#open = [...this.#open, server];
    this.#path = path;
  }

  /**
   * Serves the status page; resolves with its port. `given` is a listening socket for it. Rejects with
   * `SERVE_CONTROL_FAILED`.
   */
  async listenForStatus({ host, port }: StatusAddress, given?: number): Promise<number> {
    const server = nodeHttp().createServer((request, response) => this.#show(request, response));
    await listen(server, given === undefined ? { host, port } : { fd: given }, 'the status');
    this.#open = [...this.#open, server];
    this.#status = server;
    return portOf(server, port);
  }

  /** Answers probes from now on; the rest as `listenForStatus`. */
  async listenForHealth({ host, port }: StatusAddress, given?: number): Promise<number> {
    const server = nodeHttp().createServer((request, response) => {
      if (!isRead(request, response)) return;
      const obstacles = () => (this.#hasLeft ? [] : this.#server.obstacles());
      const { status, body } = healthAnswer(pathOf(request), obstacles);
      reply(response, status, body);
    });
    await listen(server, given === undefined ? { host, port } : { fd: given }, 'the health');
    this.#health = server;
    return portOf(server, port);
  }

  /** Answers with the status; changes nothing. */
  #show(request: IncomingMessage, response: ServerResponse): void {
    const path = pathOf(request);
    if (!isRead(request, response)) return;
    if (path === '/status' || path === '/status.json') {
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
      if (pathOf(request) === '/logs') this.#sendLogs(request, response);
      else this.#show(request, response);
      return;
    }
    try {
      const path = pathOf(request);
      if (path === '/reload') await this.#server.reload();
      else if (path === '/scale') await this.#server.scale(processesOf(await json(request)));
      else if (path === '/upgrade' && this.#server.upgrade !== undefined) {
        await this.#server.upgrade();
      } else if (path === '/stop') {
        await this.#server.released();
        await this.#stop(response);
        return;
      } else {
        const paths =
          this.#server.upgrade === undefined
            ? '/reload, /scale and /stop; only manycore serve has /upgrade'
            : '/reload, /scale, /stop and /upgrade';
        reply(response, 404, { message: `there are ${paths}` });
        return;
      }
      reply(response, 200, this.#server.status());
    } catch (error) {
      const { code }: { code?: unknown } = Object(error);
      reply(response, 500, { message: messageOf(error), code, stack: programStack(error) });
    }
  }

  /** Sends lines as JSON, one each: the last ones, and with `follow` those to come. */
  #sendLogs(request: IncomingMessage, response: ServerResponse): void {
    const { output } = this.#server;
    if (output === undefined) {
      const message = 'its output is not read: start it with --log or --log-format';
      reply(response, 404, { message });
      return;
    }
    const wanted = new URLSearchParams(request.url?.replace(/^[^?]*/, ''));
    response.writeHead(200, { ...jsonHeaders, 'Content-Type': 'application/x-ndjson' });
    const send = (line: OutputLine): void => {
      if (response.writableLength < maxUnreadLogs) response.write(`${JSON.stringify(line)}\n`);
      else response.destroy(); // its reader is stopped
    };
    for (const line of output.last(Number(wanted.get('lines')))) send(line);
    if (wanted.has('follow')) response.once('close', output.follow(send));
    else response.end();
  }

  /** Answers with the status at once; the end of that answer is the end of the server. */
  async #stop(response: ServerResponse): Promise<void> {
    response.writeHead(200, jsonHeaders);
    response.write(`${JSON.stringify(this.#server.status())}\n`);
    this.#stops.add(response);
    await this.#server.stop();
  }

  /** Descriptors of the status page and of the probes; they stay this object's. */
  get endpointFds(): { readonly status: number | undefined; readonly health: number | undefined } {
    const fdOf = (server: Server | undefined) => server && serverFd(server);
    return { status: fdOf(this.#status), health: fdOf(this.#health) };
  }

  /** A successor answers from now on, probes as well. Resolves when all that came here is answered. */
  async leave(): Promise<void> {
    this.#hasLeft = true;
    const answering = [this.#status, this.#health].filter((server) => server !== undefined);
    this.#open = this.#open.filter((server) => server !== this.#status);
    this.#health = undefined;
    this.close();
    await Promise.all(answering.map(closeGently));
  }

  /** Takes no requests any more; who waits for the end of the server still does. */
  close(): void {
    for (const server of this.#open) {
      server.close();
      server.closeIdleConnections();
    }
    if (this.#path !== undefined) rmSync(this.#path, { force: true });
  }

  /** The server has ended. */
  end(): void {
    this.close();
    for (const response of this.#stops) response.end();
    this.#stops.clear();
    this.#health?.close();
    setImmediate(() => {
      for (const server of this.#open) server.closeAllConnections();
      this.#health?.closeAllConnections();
    });
  }
}

async function listen(
  server: Server,
  at: { path: string } | { fd: number } | StatusAddress,
  what: string,
): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) => {
      const where =
        'path' in at ? at.path : 'fd' in at ? `descriptor ${at.fd}` : `${at.host}:${at.port}`;
      const message = `cannot serve ${what} at ${where}: ${messageOf(cause)}`;
      reject(new CodedError('SERVE_CONTROL_FAILED', message, { cause }));
    });
    server.listen(ownListening(at), resolve);
  });
  server.unref();
}

function portOf(server: Server, given: number): number {
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : given;
}

/** Answers a request that would change something with 405, and returns false. */
function isRead({ method }: IncomingMessage, response: ServerResponse): boolean {
  if (method === 'GET' || method === 'HEAD') return true;
  reply(response, 405, { message: 'only GET' });
  return false;
}

function pathOf(request: IncomingMessage): string {
  return (request.url ?? '/').replace(/\?.*$/s, '');
}

/** Extracts the sizes; `scale` validates them. */
function processesOf(body: unknown): number | Range {
  const { processes = 0 }: { processes?: number | Range } = Object(body);
  return processes;
}

const jsonHeaders = { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' };

function reply(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, jsonHeaders);
  response.end(`${JSON.stringify(body)}\n`);
}
