// A loop that listens itself, on its own copies of the supervisor's sockets: the kernel chooses among the loops
// that wait. A timer writes into the loop's row how long it slept; a loop that is blocked does not write.

import net from 'node:net';
import { setInterval } from '../../lib/index.js';
import type { Inbox, OnClient } from '../loop/inbox.js';
import { boardAt, Row } from '../shared/board.js';
import type { Listenable, SocketHandle } from '../shared/socket-handle.js';
import { clockMs } from './clock.js';
import { writeEveryMs } from './rows.js';

export class PortableInbox implements Inbox {
  readonly row: Row;
  readonly #onClient: OnClient;
  /** Open sockets, by number. */
  readonly #sockets = new Map<number, SocketHandle>();
  readonly #timer: NodeJS.Timeout;
  #isHeld = true;
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
      this.#onClient(number, client);
    };
    const error = handle.listen(backlog);
    if (error === 0) this.#sockets.set(number, handle);
    else handle.close();
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
    this.#isHeld = isHeld;
    for (const handle of this.#sockets.values()) {
      if (this.#isHeld) handle.ref();
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

/** `EINVAL` as libuv's number. */
const invalidArgument = -22;

/** Returns Node's handle of a socket, or the system's error as libuv's negative number. */
function handleOf(socket: Listenable): SocketHandle | number {
  if (socket.handle !== undefined) return socket.handle;
  return createServerHandle(null, 0, -1, socket.fd);
}

type CreateServerHandle = (
  address: string | null,
  port: number,
  addressType: number,
  fd?: number,
  flags?: number,
) => SocketHandle | number;

/** As `node:cluster` uses it on every line from 20 to 26 (lib/net.js). It binds, and does not listen. */
export const createServerHandle: CreateServerHandle = (...given) =>
  Reflect.apply(Reflect.get(net, '_createServerHandle'), undefined, given);
