// The access log of a loop: a line for each request that its servers have answered, or that its client has
// left. Lines go to the supervisor in batches, which writes them. Made only where a log is wanted: without one
// nothing of this is on the path of a request. Requests of HTTP/1 are those that Node announces (docs:
// diagnostics_channel, HTTP), those of HTTP/2 the streams of its sessions.

import { channel } from 'node:diagnostics_channel';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2Session, IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import { Server, type Socket } from 'node:net';
import { bytesSentNatively } from '../../../http-apps/index.js';
import { type AccessEntry, type AccessFormat, formatAccess } from '../../output/access-line.js';
import { clockMs } from '../../portable/clock.js';
import type { FromLoop } from '../../protocol.js';
import type { Link } from '../../shared/link.js';

/** Lines are sent after this time, or at this length of their text. */
const batchMs = 100;
const batchCharacters = 32 * 1024;

export interface AccessLogOptions {
  readonly format: AccessFormat;
  readonly name: string;
  readonly process: number;
  readonly loop: number;
  readonly up: Link<FromLoop>;
}

/** The part of a connection that its requests need. */
interface Connection {
  readonly address: string | undefined;
  /** Bytes sent until the end of the last answer. */
  sentBytes: number;
}

/** The wait of a connection, at its socket: also found through those that stand for it (TLS, HTTP/2). */
const waitOf = Symbol('manycore.waitMs');

type Begun = Pick<AccessEntry, 'timeMs' | 'client' | 'method' | 'path' | 'version' | 'waitMs'>;
type Ended = Pick<AccessEntry, 'status' | 'bytes' | 'isAborted'>;

export class AccessLog {
  readonly #options: AccessLogOptions;
  readonly #watched = new WeakSet<Server>();
  readonly #connections = new WeakMap<object, Connection>();
  /** Wait of the connection that a server gets now. */
  #waitMs: number | undefined;
  #lines = '';
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: AccessLogOptions) {
    this.#options = options;
    channel('http.server.request.start').subscribe((message) => {
      if (isExchange(message)) this.#began(message);
    });
  }

  /** Notes since when the connection waits that a server gets next; 0: unknown. */
  readonly take = (sinceMs: number): void => {
    this.#waitMs = sinceMs === 0 ? undefined : Math.max(0, (clockMs() - sinceMs) | 0);
  };

  watch(server: unknown): void {
    if (!(server instanceof Server) || this.#watched.has(server)) return;
    this.#watched.add(server);
    server.on('connection', (socket: Socket) => {
      Reflect.set(socket, waitOf, this.#waitMs);
      this.#waitMs = undefined;
    });
    server.on('session', (session: Http2Session) => {
      const { remoteAddress } = session.socket;
      const waitMs = waitIn(session.socket);
      session.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
        this.#streamBegan(stream, headers, { client: remoteAddress, waitMs });
      });
    });
  }

  #began({ request, response, socket }: Exchange): void {
    const connection = this.#connectionOf(socket);
    const beganMs = performance.now();
    const { method = '', url: path = '', httpVersion: version } = request;
    const waitMs = waitIn(socket);
    const begun = { timeMs: Date.now(), client: connection.address, method, path, version, waitMs };
    let isOver = false;
    const end = (isAborted: boolean): void => {
      if (isOver) return;
      isOver = true;
      const sentBytes = sentBytesOf(socket);
      const bytes = sentBytes - connection.sentBytes;
      connection.sentBytes = sentBytes;
      const status = response.headersSent ? response.statusCode : undefined;
      this.#add(begun, beganMs, { status, bytes, isAborted });
    };
    // Before Node gives the connection to the answer of the next request.
    response.once('finish', () => end(false));
    response.once('close', () => end(true));
  }

  #connectionOf(socket: Socket): Connection {
    const known = this.#connections.get(socket);
    if (known !== undefined) return known;
    const connection = { address: socket.remoteAddress, sentBytes: sentBytesOf(socket) };
    this.#connections.set(socket, connection);
    return connection;
  }

  #streamBegan(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    of: Pick<AccessEntry, 'client' | 'waitMs'>,
  ): void {
    const beganMs = performance.now();
    const method = textIn(headers[':method']);
    const path = textIn(headers[':path']);
    const begun = { ...of, timeMs: Date.now(), method, path, version: '2.0' };
    stream.once('close', () => {
      const { sentHeaders } = stream;
      this.#add(begun, beganMs, {
        status: numberIn(sentHeaders?.[':status']),
        bytes: numberIn(sentHeaders?.['content-length']),
        isAborted: stream.rstCode !== 0,
      });
    });
  }

  #add(begun: Begun, beganMs: number, ended: Ended): void {
    const { format, name, process, loop } = this.#options;
    const durationMs = performance.now() - beganMs;
    this.#lines += formatAccess({ ...begun, ...ended, name, process, loop, durationMs }, format);
    if (this.#lines.length >= batchCharacters) this.flush();
    else this.#timer ??= setTimeout(this.flush, batchMs).unref();
  }

  /** Sends the lines so far. */
  readonly flush = (): void => {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const lines = this.#lines;
    this.#lines = '';
    if (lines !== '' && !this.#isClosed) this.#options.up.post({ body: { type: 'access', lines } });
  };

  /** Drops what comes from now on: nobody writes it any more. */
  close(): void {
    this.#isClosed = true;
  }
}

function textIn(header: unknown): string {
  return typeof header === 'string' ? header : '';
}

function numberIn(header: unknown): number | undefined {
  const number = Number(header);
  return header === undefined || Number.isNaN(number) ? undefined : number;
}

function sentBytesOf(socket: Socket): number {
  const handle: unknown = Reflect.get(socket, '_handle');
  const natively = typeof handle === 'object' && handle !== null ? bytesSentNatively(handle) : 0;
  return socket.bytesWritten + natively;
}

/** The wait of a connection, also of one over TLS, whose socket has the first one as its parent. */
function waitIn(socket: object): number | undefined {
  const parent: unknown = Reflect.get(socket, '_parent');
  const own: unknown = Reflect.get(socket, waitOf);
  const waitMs: unknown = own ?? Reflect.get(Object(parent), waitOf);
  return typeof waitMs === 'number' ? waitMs : undefined;
}

/** A message of `http.server.request.start`. */
interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly socket: Socket;
}

function isExchange(message: unknown): message is Exchange {
  return (
    typeof message === 'object' &&
    message !== null &&
    ['request', 'response', 'socket'].every((name) => Reflect.get(message, name) !== undefined)
  );
}
