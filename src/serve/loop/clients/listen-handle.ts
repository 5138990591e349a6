// The handle of a listening server in a loop, in place of Node's `TCP` or `Pipe`: connections of the loop's inbox go
// in by `onconnection`. Not here: the sockets, and which handle gets a connection (listen.ts).

import { chmodSync, statSync } from 'node:fs';
import type { BoundAddress } from '../../protocol.js';
import { errnoOf } from '../../shared/errno.js';
import type { Listenable } from '../../shared/socket-handle.js';
import { ClientHandles, type OnHandleEnd, type StreamHandle } from './client-handles.js';
import type { Client } from './inbox.js';

/** UV_READABLE and UV_WRITABLE. */
const readable = 1;
const writable = 2;

/** A part of a program that shares ports with others of its kind in the same loop. */
export interface ListenOwner {
  /** Servers of one group share their ports for port 0. */
  readonly group: string;
}

/** Functions that a handle calls. */
export interface HandleEvents {
  /** Returns 0, or the system's error as libuv's negative number. */
  onListen(handle: ListenHandle, server: unknown, backlog: number): number;
  onClose(handle: ListenHandle): void;
  /** Called when the server starts or stops keeping the loop alive. */
  onRef(): void;
  onConnectionClosed: OnHandleEnd;
}

/** Replaces a server's `_handle`. Names and signatures are those of Node's `TCP`. */
export class ListenHandle {
  /** Set by Node. */
  onconnection: ((status: number, client: StreamHandle) => void) | undefined;
  readonly number: number;
  readonly owner: ListenOwner;
  /** Missing for a path, as in Node's `Pipe`. */
  readonly getsockname: ((out: object) => number) | undefined;
  readonly #events: HandleEvents;
  readonly #clients: ClientHandles;
  /** The listening socket, where this loop listens itself; `takeSocket` passes it on. */
  #socket: Listenable | undefined;
  #server: unknown;
  readonly #path: string | undefined;
  #isClosed = false;
  #isHeld = true;

  constructor(
    number: number,
    address: BoundAddress,
    server: unknown,
    owner: ListenOwner,
    socket: Listenable | undefined,
    events: HandleEvents,
  ) {
    this.#socket = socket;
    this.onconnection = undefined;
    this.number = number;
    this.owner = owner;
    this.getsockname = undefined;
    this.#path = typeof address === 'string' ? address : undefined;
    if (typeof address !== 'string') {
      this.getsockname = (out) => {
        Object.assign(out, address);
        return 0;
      };
    }
    this.#server = server;
    this.#events = events;
    this.#clients = new ClientHandles(events.onConnectionClosed);
  }

  takeSocket(): Listenable | undefined {
    const socket = this.#socket;
    this.#socket = undefined;
    return socket;
  }

  serves(server: unknown): boolean {
    return this.#server === server;
  }

  listen(backlog: number): number {
    return this.#events.onListen(this, this.#server, backlog);
  }

  /** For `readableAll` and `writableAll` of a path: adds permissions, as libuv does. Called in `listen()`. */
  fchmod(mode: number): number {
    if (this.#path === undefined) return errnoOf('ENOTSUP');
    const added = ((mode & readable) !== 0 ? 0o444 : 0) | ((mode & writable) !== 0 ? 0o222 : 0);
    try {
      chmodSync(this.#path, statSync(this.#path).mode | added);
      return 0;
    } catch (error) {
      const { errno }: { errno?: unknown } = Object(error);
      return typeof errno === 'number' ? errno : errnoOf('EACCES');
    }
  }

  close(onClosed?: () => void): void {
    if (!this.#isClosed) {
      this.#isClosed = true;
      this.#server = undefined;
      this.#events.onClose(this);
    }
    if (onClosed !== undefined) process.nextTick(() => Reflect.apply(onClosed, this, []));
  }

  ref(): void {
    this.#isHeld = true;
    this.#events.onRef();
  }

  unref(): void {
    this.#isHeld = false;
    this.#events.onRef();
  }

  hasRef(): boolean {
    return this.#isHeld && !this.#isClosed;
  }

  /** Passes a connection to the server, and takes it over. */
  connect(given: Client): void {
    const client =
      typeof given === 'number' ? this.#clients.open(given) : this.#clients.adopt(given);
    if (this.#isClosed || this.onconnection === undefined) client.close();
    else this.onconnection(0, client);
  }
}
