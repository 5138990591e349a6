// What is under way over the connections of a loop's web servers: counted in its row of the scoreboard, and
// asked by a drain, which closes the idle ones. Requests are what Node announces of every HTTP/1 server
// (docs: diagnostics_channel, HTTP), and the streams of HTTP/2. On the path of each connection and each
// request, so with one record and one listener for each connection, and none for a request.

import { channel } from 'node:diagnostics_channel';
import type { Http2Session, ServerHttp2Stream } from 'node:http2';
import type { Server, Socket } from 'node:net';
import { Server as TlsServer } from 'node:tls';
import { boardAt, type Row } from './board.js';

interface Tracked {
  /** Requests that wait for their answer. */
  waiting: number;
  /** What it had read when the last answer went. */
  answeredBytes: number;
  /** `undefined` for one that does not listen. */
  readonly server: Server | undefined;
}

/** How an HTTP/2 session is used. */
export interface SessionUse {
  /** That are open. */
  readonly streams: number;
  /** When the last one ended, or the session began. */
  readonly usedMs: number;
}

/** On a socket. */
const tracked = Symbol('manycore.connection');

interface TrackedSocket extends Socket {
  [tracked]?: Tracked;
}

export class Connections {
  readonly #row: Row;
  readonly #sockets = new Set<TrackedSocket>();
  readonly #onClose: (this: TrackedSocket) => void;

  constructor(row: Row) {
    this.#row = row;
    const sockets = this.#sockets;
    this.#onClose = function () {
      sockets.delete(this);
      // A request whose client goes away is over, too.
      row.addOwn(boardAt.inFlight, -(this[tracked]?.waiting ?? 0));
    };
    channel('http.server.request.start').subscribe((message) => {
      if (hasSocket(message)) this.#began(message.socket);
    });
    channel('http.server.response.finish').subscribe((message) => {
      if (hasSocket(message)) this.#answered(message.socket);
    });
  }

  /** From now on the connections of a web server are known. */
  watch(server: Server): void {
    const event = server instanceof TlsServer ? 'secureConnection' : 'connection';
    server.on(event, (socket: Socket) => this.#track(socket, server));
  }

  /** From now on the requests of an HTTP/2 session are counted, in what is returned, too. */
  watchSession(session: Http2Session): SessionUse {
    const use = { streams: 0, usedMs: performance.now() };
    session.on('stream', (stream: ServerHttp2Stream) => {
      use.streams += 1;
      this.#row.addOwn(boardAt.inFlight, 1);
      stream.once('close', () => {
        use.streams -= 1;
        use.usedMs = performance.now();
        this.#row.addOwn(boardAt.inFlight, -1);
        // One that was reset has no answer.
        if (stream.rstCode === 0) this.#row.addOwn(boardAt.requests, 1);
      });
    });
    return use;
  }

  /**
   * Those over which nothing is under way: nothing came at all, or since the last answer. What was upgraded,
   * or has sent half a request, is not idle. Of one server, or of all.
   */
  idle(server?: Server): Socket[] {
    return [...this.#sockets].filter(({ [tracked]: record, bytesRead }) => {
      const isMeant = server === undefined || record?.server === server;
      return isMeant && record?.waiting === 0 && record.answeredBytes === bytesRead;
    });
  }

  #track(socket: TrackedSocket, server?: Server): Tracked {
    if (socket[tracked] !== undefined) return socket[tracked];
    const record: Tracked = { waiting: 0, answeredBytes: 0, server };
    socket[tracked] = record;
    this.#sockets.add(socket);
    socket.on('close', this.#onClose);
    return record;
  }

  #began(socket: TrackedSocket): void {
    // A server that does not listen gets its connections from the program.
    const record = socket[tracked] ?? this.#track(socket);
    record.waiting += 1;
    this.#row.addOwn(boardAt.inFlight, 1);
  }

  #answered(socket: TrackedSocket): void {
    const record = socket[tracked];
    if (record === undefined || record.waiting === 0 || socket.destroyed) return;
    record.waiting -= 1;
    record.answeredBytes = socket.bytesRead;
    this.#row.addOwn(boardAt.inFlight, -1);
    this.#row.addOwn(boardAt.requests, 1);
  }
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
