// Drains a loop without losing a request: nothing new comes in, and each connection is closed with the
// answer to its next request (`Connection: close`), after a moment without input, or at the deadline.
//
// A connection that is idle already keeps the timer that it has, so it is checked once, after that moment.
// HTTP/2 has a frame for it (GOAWAY), which Node sends so that streams in transit are refused; so a session
// gets it in a pause, and a session without pauses when half of the time is over. Other connections, those of
// WebSockets among them, are left to the program until the deadline; it is notified when the drain begins.
// Idle connections are not closed at once, as Node's `server.close()` does: a request may be in transit over
// one of them, and its client would see a reset. Where others serve in place of this loop, they have the rest of the
// time that Node has promised their clients (`Keep-Alive: timeout=5`), unless that is long: the clients that are
// given a minute are proxies, and notice that a connection was closed.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2Session } from 'node:http2';
import { Server as NetServer, type Socket } from 'node:net';
import { announcements, isWebServer } from '../../lib/index.js';
import type { Connections, SessionUse } from './clients/connections.js';

/** Idle time after which a connection is closed, in ms. */
const idleMs = 1000;
const tickMs = 100;
/** Time without a stream that counts as a pause of an HTTP/2 session: longer than most round trips, in ms. */
const pauseMs = 200;

export class Drain {
  readonly #connections: Connections;
  readonly #mayLeave: () => boolean;
  readonly #onDone: () => void;
  /** Servers that listen, or have connections. */
  readonly #servers = new Set<NetServer>();
  /** Servers with listeners of this drain: they may listen again after they have closed. */
  readonly #watched = new WeakSet<NetServer>();
  /** Sessions of HTTP/2 servers. */
  readonly #sessions = new Map<Http2Session, SessionUse>();
  #isDraining = false;
  #hasClosedIdle = false;
  #isDone = false;
  #timer: NodeJS.Timeout | undefined;

  /** `mayLeave` returns true when nothing is open, and nothing will come. */
  constructor(connections: Connections, mayLeave: () => boolean, onDone: () => void) {
    this.#connections = connections;
    this.#mayLeave = mayLeave;
    this.#onDone = onDone;
  }

  /** Adds a server of this loop that listens. */
  addServer(server: unknown): void {
    if (!(server instanceof NetServer)) return;
    this.#servers.add(server);
    if (this.#watched.has(server)) return;
    this.#watched.add(server);
    server.on('close', () => this.#servers.delete(server));
    if (isWebServer(server) || isHttp2Server(server)) {
      this.#connections.watch(server, (socket) => {
        if (this.#isDraining) closeIdle([socket]); // it was on its way when the drain began
      });
    }
    server.on('session', (session: Http2Session) => {
      this.#sessions.set(session, this.#connections.watchSession(session));
      session.once('close', () => this.#sessions.delete(session));
    });
  }

  /** Notes that a connection was closed. */
  noteClosed(): void {
    if (this.#isDraining) this.#finishIfDone();
  }

  /** Drains one server: its connections end with their next answer, and idle ones after a moment. */
  quiet(server: NetServer): void {
    if (!isWebServer(server) || this.#isDraining) return;
    closeIdle(this.#connections.idle(server));
    closeAfterAnswers(server);
  }

  /**
   * Begins the drain: closes all connections within `deadlineMs`. `isReplaced`: others serve in its place; a later
   * call may take that back.
   */
  begin(deadlineMs: number, isReplaced: boolean): void {
    if (!this.#hasClosedIdle) {
      this.#hasClosedIdle = !isReplaced;
      const idle = this.#connections.idle();
      const maxMs = isReplaced ? deadlineMs / 2 : 0;
      closeIdle(idle.filter((socket) => !closesWithin(socket, maxMs)));
    }
    if (this.#isDraining) return;
    this.#isDraining = true;
    announcements.serverDrain.publish({ deadlineMs });
    for (const server of this.#servers) closeAfterAnswers(server);
    const endMs = performance.now() + deadlineMs;
    this.#timer = setInterval(() => {
      const nowMs = performance.now();
      if (nowMs >= endMs) this.#finish();
      else this.#finishIfDone();
      this.#closeSessions(nowMs, nowMs >= endMs - deadlineMs / 2);
    }, tickMs);
    this.#finishIfDone();
  }

  /** Sends GOAWAY: clients open no new stream, and sessions close once the open ones have ended. */
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
      // Node emits `close` once more when a closed server is closed again.
      if (server.listening) server.close();
      if (isWebServer(server)) server.closeAllConnections();
    }
    for (const session of this.#sessions.keys()) session.destroy();
    this.#onDone();
  }
}

/** Closes connections that are idle now, after a moment without input. */
function closeIdle(idle: readonly Socket[]): void {
  const before = new Map(idle.map((socket) => [socket, socket.bytesRead]));
  const close = (): void => {
    for (const [socket, bytesRead] of before) {
      if (socket.bytesRead === bytesRead) socket.destroy();
    }
  };
  // After a long callback timers come before input. What a client has sent meanwhile is read between the two.
  setTimeout(() => setImmediate(close), idleMs).unref();
}

/** Returns true for a connection that was answered and that Node closes by itself (`keepAliveTimeout`). */
function closesWithin({ bytesRead, timeout = 0 }: Socket, maxMs: number): boolean {
  return bytesRead > 0 && timeout > 0 && timeout <= maxMs;
}

/**
 * Closes a server after `quiet`; resolves when its connections have ended. Does not call its own `close()`,
 * which ends idle connections at once.
 */
export async function closeServer(server: NetServer): Promise<void> {
  await new Promise((resolve) => {
    Reflect.apply(NetServer.prototype.close, server, [resolve]); // an error: it was closed before
  });
  if (isWebServer(server)) server.close(() => {}); // its timer that checks connections
}

/** Checks a method, because the classes of HTTP/2 servers are not exported. */
function isHttp2Server(server: NetServer): boolean {
  return 'updateSettings' in server;
}

/** Runs the program's handlers of SIGTERM: signals do not reach threads. */
function emitSigterm(): void {
  if (process.listenerCount('SIGTERM') > 0) process.emit('SIGTERM', 'SIGTERM');
}

/**
 * Closes each connection with the answer to its last request (`Connection: close`): pipelined requests are
 * answered first. Also for secure HTTP/2 servers, which may have HTTP/1 clients.
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
