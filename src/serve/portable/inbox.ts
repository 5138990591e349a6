// A loop that listens itself, on its own copies of the supervisor's sockets: the kernel chooses among the loops
// that wait. A timer writes into the loop's row how long it slept; a loop that is blocked does not write.

import { getSystemErrorName } from 'node:util';
import { setInterval } from '../../lib/index.js';
import { IdleConnections } from '../loop/clients/idle-connections.js';
import type { Inbox, OnClient } from '../loop/clients/inbox.js';
import { boardAt, Row } from '../shared/board.js';
import { errnoOf } from '../shared/errno.js';
import type { Listenable, SocketHandle } from '../shared/socket-handle.js';
import { clockMs } from './clock.js';
import { writeEveryMs } from './rows.js';
import { createServerHandle } from './server-handle.js';

export class PortableInbox implements Inbox {
  readonly files = undefined;
  readonly row: Row;
  /** Connections stay here: no other thread may take them. */
  readonly idle = new IdleConnections(undefined, () => {});
  readonly #onClient: OnClient;
  /** Handles, by number of the socket. */
  readonly #sockets = new Map<number, SocketHandle>();
  /** Backlogs of sockets that wait for `begin`, by number. */
  #waiting: Map<number, number> | undefined = new Map();
  readonly #timer: NodeJS.Timeout;
  #dueMs = 0;

  constructor(board: SharedArrayBuffer, process: number, index: number, onClient: OnClient) {
    this.row = new Row(board, process, index);
    this.#onClient = onClient;
    this.#timer = setInterval(this.#write, writeEveryMs).unref();
    this.#write();
  }

  readonly #write = (): void => {
    const nowMs = performance.now();
    this.row.set(boardAt.lagMs, this.#dueMs === 0 ? 0 : Math.max(0, nowMs - this.#dueMs));
    this.#dueMs = nowMs + writeEveryMs;
    this.row.set(boardAt.idleMs, performance.eventLoopUtilization().idle);
    this.row.set(boardAt.idleWrittenAt, clockMs());
  };

  listen(number: number, socket: Listenable | undefined, backlog: number): number {
    if (this.#sockets.has(number)) {
      this.discard(socket); // another server of this loop listens there, too
      return 0;
    }
    const handle = socket === undefined ? invalidArgument : handleOf(socket);
    if (typeof handle === 'number') return handle;
    handle.onconnection = (status, client) => {
      if (status !== 0 || client === undefined) return; // no descriptor is left, or the client is gone
      this.row.add(boardAt.placed, 1);
      this.row.add(boardAt.open, 1);
      this.#onClient(number, client, 0);
    };
    this.#sockets.set(number, handle);
    if (this.#waiting === undefined) return this.#begin(number, backlog);
    this.#waiting.set(number, backlog);
    return 0;
  }

  begin(): void {
    const waiting = this.#waiting ?? new Map<number, number>();
    this.#waiting = undefined;
    for (const [number, backlog] of waiting) {
      const errno = this.#begin(number, backlog);
      if (errno !== 0) throw listenError(errno);
    }
  }

  #begin(number: number, backlog: number): number {
    const error = this.#sockets.get(number)?.listen(backlog) ?? 0;
    if (error !== 0) this.#close(number);
    return error;
  }

  discard(socket: Listenable | undefined): void {
    const handle = socket && handleOf(socket);
    if (typeof handle === 'object') handle.close();
  }

  wake(): void {
    const isLeaving = this.row.state === 'draining';
    for (const number of this.#sockets.keys()) {
      const isListed = (this.row.get(boardAt.listens) & (1 << number)) !== 0;
      if (isLeaving || !isListed) this.#close(number);
    }
  }

  #close(number: number): void {
    this.#sockets.get(number)?.close();
    this.#sockets.delete(number);
  }

  hold(isHeld: boolean): void {
    for (const handle of this.#sockets.values()) {
      if (isHeld) handle.ref();
      else handle.unref();
    }
  }

  isDoneWith(number: number): boolean {
    return !this.#sockets.has(number);
  }

  tryLeave(): boolean {
    this.close();
    return true;
  }

  close(): void {
    clearInterval(this.#timer);
    for (const number of this.#sockets.keys()) this.#close(number);
  }
}

const invalidArgument = errnoOf('EINVAL');

function listenError(errno: number): Error {
  const code = getSystemErrorName(errno);
  return Object.assign(new Error(`listen ${code}`), { code, errno, syscall: 'listen' });
}

/** Returns Node's handle of a socket, or the system's error as libuv's negative number. */
function handleOf(socket: Listenable): SocketHandle | number {
  if (socket.handle !== undefined) return socket.handle;
  return socket.fd < 0 ? invalidArgument : createServerHandle(null, 0, -1, socket.fd);
}
