// Connections and open requests of a loop's web servers: counted in its row of the scoreboard, and used by a
// drain, which closes idle connections. Requests are those that Node announces for every HTTP/1 server (docs:
// diagnostics_channel, HTTP), and the streams of HTTP/2. On the path of each connection and each request, so
// with one record and one listener for each connection, and none for a request.

import { channel } from 'node:diagnostics_channel';
import type { Http2Session, ServerHttp2Stream } from 'node:http2';
import type { Server, Socket } from 'node:net';
import { Server as TlsServer } from 'node:tls';
import { boardAt, type Row } from '../../shared/board.js';
import type { IdleConnections, IdleState } from './idle-connections.js';

interface Tracked {
  /** Number of requests without an answer yet. */
  waiting: number;
  /** Bytes read until the last answer was sent. */
  answeredBytes: number;
  /** `undefined`: the server does not listen. */
  readonly server: Server | undefined;
  readonly idle: IdleState;
}

/** Use of an HTTP/2 session. */
export interface SessionUse {
  /** Number of open streams. */
  readonly streams: number;
  /** End of the last stream, or start of the session. */
  readonly usedMs: number;
}

/** The record of a socket. */
const tracked = Symbol('manycore.connection');

interface TrackedSocket extends Socket {
  [tracked]?: Tracked;
}

export class Connections {
  readonly #row: Row;
  readonly #idle: IdleConnections;
  readonly #sockets = new Set<TrackedSocket>();
  readonly #onClose: (this: TrackedSocket) => void;

  constructor(row: Row, idle: IdleConnections) {
    this.#row = row;
    this.#idle = idle;
    const sockets = this.#sockets;
    this.#onClose = function () {
      sockets.delete(this);
      // A request ends with its connection, too.
      row.addOwn(boardAt.inFlight, -(this[tracked]?.waiting ?? 0));
    };
    channel('http.server.request.start').subscribe((message) => {
      if (hasSocket(message)) this.#began(message.socket);
    });
    channel('http.server.response.finish').subscribe((message) => {
      if (isAnswer(message)) this.#answered(message);
    });
  }

  /** Tracks the connections of a web server from now on, and calls `onNew` with each. */
  watch(server: Server, onNew: (socket: Socket) => void): void {
    const event = server instanceof TlsServer ? 'secureConnection' : 'connection';
    server.on(event, (socket: Socket) => {
      this.#track(socket, server);
      onNew(socket);
    });
  }

  /** Counts the streams of an HTTP/2 session from now on, also in the returned object. */
  watchSession(session: Http2Session): SessionUse {
    const use = { streams: 0, usedMs: performance.now() };
    session.on('stream', (stream: ServerHttp2Stream) => {
      use.streams += 1;
      this.#row.addOwn(boardAt.inFlight, 1);
      stream.once('close', () => {
        use.streams -= 1;
        use.usedMs = performance.now();
        this.#row.addOwn(boardAt.inFlight, -1);
        // A stream that was reset has no answer.
        if (stream.rstCode === 0) this.#row.addOwn(boardAt.requests, 1);
      });
    });
    return use;
  }

  /**
   * Idle connections of one server, or of all: without any input, or without input since the last answer.
   * Connections that were upgraded, or have sent half a request, are not idle.
   */
  idle(server?: Server): Socket[] {
    return [...this.#sockets].filter(({ [tracked]: record, bytesRead }) => {
      const isMeant = server === undefined || record?.server === server;
      return isMeant && record?.waiting === 0 && record.answeredBytes === bytesRead;
    });
  }

  #track(socket: TrackedSocket, server?: Server): Tracked {
    if (socket[tracked] !== undefined) return socket[tracked];
    const idle = this.#idle.enter(socket, server, idleOf);
    const record: Tracked = { waiting: 0, answeredBytes: 0, server, idle };
    socket[tracked] = record;
    this.#sockets.add(socket);
    socket.on('close', this.#onClose);
    return record;
  }

  #began(socket: TrackedSocket): void {
    // A server that does not listen gets its connections from the program.
    const record = socket[tracked] ?? this.#track(socket);
    record.waiting += 1;
    record.idle.started += 1;
    this.#row.addOwn(boardAt.inFlight, 1);
  }

  #answered({ socket, request, response }: Answer): void {
    const record = socket[tracked];
    if (record === undefined || record.waiting === 0 || socket.destroyed) return;
    record.waiting -= 1;
    record.answeredBytes = socket.bytesRead;
    if (record.waiting === 0) this.#idle.end(record.idle, socket, request, response);
    this.#row.addOwn(boardAt.inFlight, -1);
    this.#row.addOwn(boardAt.requests, 1);
  }
}

function idleOf(socket: Pick<TrackedSocket, typeof tracked>): IdleState | undefined {
  return socket[tracked]?.idle;
}

/** A message of `http.server.response.finish`. */
interface Answer {
  readonly socket: TrackedSocket;
  readonly request: object;
  readonly response: object;
}

function isAnswer(message: unknown): message is Answer {
  return hasSocket(message) && 'request' in message && 'response' in message;
}

function hasSocket(message: unknown): message is { readonly socket: TrackedSocket } {
  return (
    typeof message === 'object' &&
    message !== null &&
    'socket' in message &&
    typeof message.socket === 'object' &&
    message.socket !== null
  );
}
