// Lets an unchanged program share its listening sockets: in a loop, Node calls `cluster._getServer` for a
// handle instead of binding (`net.Server.listen`, of every kind of server), and gets one of ours. The
// supervisor binds; connections come from the listener thread and go in by `handle.onconnection`, Node's own
// way, so that the options of the server hold.
//
// Node uses these members of `cluster` on every line from 20 to 26 (lib/net.js, `listenInCluster`); they are
// not documented; the tests of servers, run on each line, hold them to it.
// Not here: binding (supervisor.ts), which loop gets a connection (crates/core/src/accept).

import cluster from 'node:cluster';
import { Server, Socket } from 'node:net';
import { Server as TlsServer } from 'node:tls';
import { bytesSentNatively } from '../../http-apps/index.js';
import type { BoundAddress, ListenAnswer, ListenQuery } from '../protocol.js';

/** `EADDRINUSE` as libuv's number: the result of a second `listen()` on one socket. */
const addressInUse = -98;

/** A stream handle of Node: a `TCP` or a `Pipe`. */
interface StreamHandle {
  readonly bytesWritten: number;
  open(fd: number): number;
  close(onClosed?: () => void): void;
  /** TCP only: closes with a reset, for `socket.resetAndDestroy()`. */
  reset?(onClosed?: () => void): number;
  [isEndReported]?: boolean;
}

/** Set on a handle once its end was reported. */
const isEndReported = Symbol('manycore.isEndReported');

interface StreamHandleClass {
  new (type: number): StreamHandle;
  readonly name: string;
  readonly prototype: StreamHandle;
}
/** The second argument of both classes' constructors is for accepted connections. */
const connectionType = 0;

/** Functions of the loop that a listening server uses. */
export interface ListenHooks {
  /** Forwards a query to the supervisor. */
  readonly requestListen: (query: ListenQuery) => Promise<ListenAnswer>;
  /** Called when the server starts or stops taking connections of a socket. */
  readonly onListening: (handle: ListenHandle, server: unknown) => void;
  readonly onClose: (handle: ListenHandle) => void;
  /** Called when a connection of this loop was closed, with the bytes sent over it. */
  readonly onConnectionClosed: (bytesWritten: number) => void;
  /** Called when a listening server starts or stops keeping the loop alive. */
  readonly onRef: () => void;
  /** Owner of a server, called in its `listen()`; `undefined`: the program. */
  readonly ownerOf: (server: unknown) => ListenOwner | undefined;
}

/** A part of a program that shares ports with others of its kind in the same loop. */
export interface ListenOwner {
  /** Servers of one group share their ports for port 0. */
  readonly group: string;
}

/** Replaces a server's `_handle`. Names and signatures are those of Node's `TCP`. */
export class ListenHandle {
  /** Set by Node. */
  onconnection: ((status: number, client: StreamHandle) => void) | undefined;
  readonly number: number;
  /** Missing for a path, as in Node's `Pipe`. */
  readonly getsockname: ((out: object) => number) | undefined;
  readonly #hooks: ListenHooks;
  #server: unknown;
  #class: StreamHandleClass | undefined;
  #isClosed = false;
  #isHeld = true;

  constructor(number: number, address: BoundAddress, server: unknown, hooks: ListenHooks) {
    this.onconnection = undefined;
    this.number = number;
    this.getsockname = undefined;
    if (typeof address !== 'string') {
      this.getsockname = (out) => {
        Object.assign(out, address);
        return 0;
      };
    }
    this.#server = server;
    this.#hooks = hooks;
  }

  serves(server: unknown): boolean {
    return this.#server === server;
  }

  listen(): number {
    this.#hooks.onListening(this, this.#server);
    return 0;
  }

  close(onClosed?: () => void): void {
    if (!this.#isClosed) {
      this.#isClosed = true;
      this.#server = undefined;
      this.#hooks.onClose(this);
    }
    if (onClosed !== undefined) process.nextTick(() => Reflect.apply(onClosed, this, []));
  }

  ref(): void {
    this.#isHeld = true;
    this.#hooks.onRef();
  }

  unref(): void {
    this.#isHeld = false;
    this.#hooks.onRef();
  }

  hasRef(): boolean {
    return this.#isHeld && !this.#isClosed;
  }

  /** Passes the connection behind `fd` to the server, and takes the descriptor over. */
  connect(fd: number): void {
    const client = this.#open(fd);
    if (this.#isClosed || this.onconnection === undefined) client.close();
    else this.onconnection(0, client);
  }

  /**
   * Makes a handle for a descriptor. The first one comes from a `Socket`, which detects the kind of the
   * descriptor; the others are made by its class, because all connections of one socket are alike.
   */
  #open(fd: number): StreamHandle {
    if (this.#class !== undefined) {
      const made = new this.#class(connectionType);
      made.open(fd);
      return made;
    }
    const socket = new Socket({ fd, readable: false, writable: false });
    const made: unknown = Reflect.get(socket, '_handle');
    if (!isStreamHandle(made)) throw new Error(`descriptor ${fd} is no connection`);
    Reflect.set(socket, '_handle', null);
    const itsClass: unknown = made.constructor;
    if (isStreamHandleClass(itsClass)) {
      this.#class = reportingClass(itsClass, this.#hooks.onConnectionClosed);
      Object.setPrototypeOf(made, this.#class.prototype);
    }
    return made;
  }
}

/** Returns a subclass of `base` whose handles report their end, once, with the bytes sent over them. */
function reportingClass(
  base: StreamHandleClass,
  onEnd: (bytesWritten: number) => void,
): StreamHandleClass {
  const report = (handle: StreamHandle): void => {
    if (handle[isEndReported]) return;
    handle[isEndReported] = true;
    onEnd(handle.bytesWritten + bytesSentNatively(handle));
  };
  class Reporting extends base {
    override close(onClosed?: () => void): void {
      report(this);
      super.close(onClosed);
    }
  }
  const { reset } = base.prototype;
  if (reset !== undefined) {
    Reporting.prototype.reset = function (onClosed) {
      report(this);
      return Reflect.apply(reset, this, [onClosed]);
    };
  }
  // The class name that inspecting a socket shows.
  Object.defineProperty(Reporting, 'name', { value: base.name });
  return Reporting;
}

function isStreamHandle(value: unknown): value is StreamHandle {
  return typeof value === 'object' && value !== null && 'open' in value && 'close' in value;
}

function isStreamHandleClass(value: unknown): value is StreamHandleClass {
  return typeof value === 'function';
}

type ServerDone = (errno: number, handle?: ListenHandle) => void;

/** The next server that listens in this thread is the one of `listenForExport`. */
let isExportNext = false;

/**
 * Calls `listen` for the program's export, which returns true when it makes a server listen. A server of the
 * program's own that listens on the same port later, when its database is ready, replaces that server.
 */
export function listenForExport(listen: () => boolean): void {
  isExportNext = true;
  isExportNext = listen() && isExportNext;
}

/**
 * Makes servers of this thread listen through `hooks` from now on. `id` is in `cluster.worker.id`, for
 * programs that would fork with `cluster`: from 1 on, one for each loop.
 */
export function takeOverListening(hooks: ListenHooks, id: number): void {
  const counters = new WeakMap<ListenOwner, Map<string, number>>();
  const program: ListenOwner = { group: '' };
  /** Owners that listen on each socket, each once. */
  const taken = new Map<number, Set<ListenOwner>>();
  const exported = new Map<number, Server>();
  const getServer = (server: unknown, given: Record<string, unknown>, done: ServerDone): void => {
    const owner = hooks.ownerOf(server) ?? program;
    const indices = counters.get(owner) ?? new Map<string, number>();
    counters.set(owner, indices);
    const query = queryOf(server, given, indices, owner);
    const isExport = isExportNext;
    isExportNext = false;
    const answered = (answer: ListenAnswer): void => {
      if ('number' in answer) {
        exported.get(answer.number)?.close();
        if (isExport && server instanceof Server) exported.set(answer.number, server);
        else exported.delete(answer.number);
      }
      if ('errno' in answer) {
        done(answer.errno);
        return;
      }
      const owners = taken.get(answer.number) ?? new Set();
      if (owners.has(owner)) done(addressInUse);
      else {
        taken.set(answer.number, owners.add(owner));
        if (server instanceof TlsServer && answer.ticketKeys !== undefined) {
          server.setTicketKeys(Buffer.from(answer.ticketKeys, 'hex'));
        }
        const onClose = (handle: ListenHandle): void => {
          owners.delete(owner);
          hooks.onClose(handle);
        };
        done(0, new ListenHandle(answer.number, answer.address, server, { ...hooks, onClose }));
      }
    };
    // In a tick of its own: an error of the server's listeners is the program's, no rejection here.
    void hooks.requestListen(query).then((answer) => process.nextTick(answered, answer));
  };
  // `isWorker` stays false: otherwise datagram sockets would come here, too.
  Reflect.set(cluster, 'isPrimary', false);
  Reflect.set(cluster, 'isMaster', false);
  Reflect.set(cluster, '_getServer', getServer);
  Reflect.set(cluster, 'worker', workerOf(id));
}

/** Makes a `Worker` as `cluster` does in its workers, but without a channel to a primary: `send()` fails. */
function workerOf(id: number): object {
  const Worker: unknown = Reflect.get(cluster, 'Worker');
  if (typeof Worker !== 'function') return { id, process };
  return Reflect.construct(Worker, [{ id, process, state: 'online' }]);
}

function queryOf(
  server: unknown,
  given: Record<string, unknown>,
  indices: Map<string, number>,
  { group }: ListenOwner,
): ListenQuery {
  const { address, port, addressType, backlog, flags } = given;
  const key = `${address}:${port}:${addressType}`;
  const index = indices.get(key) ?? 0;
  // A second call for a port number finds it in use; each `listen(0)` gets a port of its own.
  if (port === 0) indices.set(key, index + 1);
  return {
    address: typeof address === 'string' ? address : null,
    port: numberOr(port, -1),
    addressType: numberOr(addressType, -1),
    backlog: numberOr(backlog, 0),
    ...(server instanceof TlsServer && { ticketKeys: server.getTicketKeys().toString('hex') }),
    isV6Only: (numberOr(flags, 0) & 1) !== 0, // UV_TCP_IPV6ONLY
    index,
    ...(port === 0 && group !== '' && { group }),
  };
}

function numberOr(value: unknown, otherwise: number): number {
  return typeof value === 'number' ? value : otherwise;
}
