// How a loop leaves without losing a request: nothing new comes in, each connection is closed with the
// answer to its next request (`Connection: close`), or when nothing has come over it for a moment, or
// at the deadline.
//
// A connection that is idle already keeps the timer that it has, so it is looked at once, after that moment.
// HTTP/2 has a frame for it (GOAWAY), which Node sends so that streams on their way are refused; so a session
// gets it in a pause, and one without pauses when half of the time is over. Other connections, those of
// WebSockets among them, are left to the program until the deadline; it hears of the drain when that begins.
// Idle connections are not closed at once, as Node's `server.close()` does: a request may be on its way over
// one of them, and its client would see a reset.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2Session } from 'node:http2';
import { Server as NetServer } from 'node:net';
import { announcements, isWebServer } from '../internal/index.js';
import type { Connections, SessionUse } from './connections.js';

/** A connection that has been idle for so long is closed, in ms. */
const idleMs = 1000;
const tickMs = 100;
/** An HTTP/2 session without a stream for so long has a pause: longer than most ways to a client, in ms. */
const pauseMs = 200;

export class Drain {
  readonly #connections: Connections;
  readonly #mayLeave: () => boolean;
  readonly #onDone: () => void;
  readonly #servers = new Set<NetServer>();
  /** Those of HTTP/2 servers. */
  readonly #sessions = new Map<Http2Session, SessionUse>();
  #isDraining = false;
  #isDone = false;
  #timer: NodeJS.Timeout | undefined;

  /** `mayLeave`: nothing is open, and nothing will come. */
  constructor(connections: Connections, mayLeave: () => boolean, onDone: () => void) {
    this.#connections = connections;
    this.#mayLeave = mayLeave;
    this.#onDone = onDone;
  }

  /** A server of this loop listens. */
  addServer(server: unknown): void {
    if (!(server instanceof NetServer) || this.#servers.has(server)) return;
    this.#servers.add(server);
    if (isWebServer(server) || isHttp2Server(server)) this.#connections.watch(server);
    server.on('session', (session: Http2Session) => {
      this.#sessions.set(session, this.#connections.watchSession(session));
      session.once('close', () => this.#sessions.delete(session));
    });
  }

  /** A connection was closed. */
  noteClosed(): void {
    if (this.#isDraining) this.#finishIfDone();
  }

  /** One server alone: its connections end with their next answer, and idle ones after a moment. */
  quiet(server: NetServer): void {
    if (!isWebServer(server) || this.#isDraining) return;
    closeAfterAnswers(server);
    this.#closeIdle(server);
  }

  /** Nothing new comes in any more: closes what is open, within `deadlineMs`. */
  begin(deadlineMs: number): void {
    if (this.#isDraining) return;
    this.#isDraining = true;
    announcements.serverDrain.publish({ deadlineMs });
    for (const server of this.#servers) closeAfterAnswers(server);
    this.#closeIdle();
    const endMs = performance.now() + deadlineMs;
    this.#timer = setInterval(() => {
      const nowMs = performance.now();
      if (nowMs >= endMs) this.#finish();
      else this.#finishIfDone();
      this.#closeSessions(nowMs, nowMs >= endMs - deadlineMs / 2);
    }, tickMs);
    this.#finishIfDone();
  }

  #closeIdle(server?: NetServer): void {
    const idle = this.#connections.idle(server);
    const before = new Map(idle.map((socket) => [socket, socket.bytesRead]));
    setTimeout(() => {
      for (const [socket, bytesRead] of before) {
        if (socket.bytesRead === bytesRead) socket.destroy();
      }
    }, idleMs).unref();
  }

  /** Tells their clients to open no stream any more; they close once those that are open have ended. */
  #closeSessions(nowMs: number, isLate: boolean): void {
    for (const [session, { streams, usedMs }] of this.#sessions) {
      const pauses = streams === 0 && nowMs - usedMs >= pauseMs;
      if ((pauses || isLate) && !session.closed) session.close();
    }
  }

  #finishIfDone(): void {
    if (!this.#isDone && this.#mayLeave()) this.#finish();
  }

  #finish(): void {
    if (this.#isDone) return;
    this.#isDone = true;
    clearInterval(this.#timer);
    emitSigterm();
    for (const server of this.#servers) {
      server.close();
      if (isWebServer(server)) server.closeAllConnections();
    }
    for (const session of this.#sessions.keys()) session.destroy();
    this.#onDone();
  }
}

/**
 * Closes a server that is quiet; resolves when its connections have ended. Not by its own `close()`, which
 * ends idle connections at once.
 */
export async function closeServer(server: NetServer): Promise<void> {
  await new Promise((resolve) => {
    Reflect.apply(NetServer.prototype.close, server, [resolve]); // an error: it was closed before
  });
  if (isWebServer(server)) server.close(() => {}); // what it watches connections with
}

/** Its classes are not exported. */
function isHttp2Server(server: NetServer): boolean {
  return 'updateSettings' in server;
}

/** What the program does at its end, it does at SIGTERM; in a thread no signal would reach it. */
function emitSigterm(): void {
  if (process.listenerCount('SIGTERM') > 0) process.emit('SIGTERM', 'SIGTERM');
}

/**
 * The answer to the last request that has come over a connection says that it is closed then: those that a
 * client has sent ahead are answered first. Also of secure HTTP/2 servers, which may have clients that speak
 * HTTP/1.
 */
function closeAfterAnswers(server: NetServer): void {
  Reflect.set(server, 'keepAliveTimeout', idleMs);
  const last = new WeakMap<object, ServerResponse>();
  server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
    if (request.httpVersionMajor !== 1) return;
    const { socket } = request;
    last.set(socket, response);
    // Node reads it when it writes the head.
    Object.defineProperty(response, 'shouldKeepAlive', {
      configurable: true,
      get: () => last.get(socket) !== response,
      set: () => {},
    });
  });
}
