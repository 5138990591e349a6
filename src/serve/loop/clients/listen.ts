// Lets an unchanged program share its listening sockets: in a loop, Node calls `cluster._getServer` for a
// handle instead of binding (`net.Server.listen`, of every kind of server), and gets one of ours. The
// supervisor binds; connections come from the loop's inbox and go in by `handle.onconnection`, Node's own way, so
// that the options of the server hold.
//
// Node uses these members of `cluster` on every line from 20 to 26 (lib/net.js, `listenInCluster`); they are
// not documented; the tests of servers, run on each line, hold them to it.
// Not here: binding (supervisor/sockets.ts), where connections come from (inbox.ts), which loop gets one
// (crates/core/src/accept).

import cluster from 'node:cluster';
import { closeSync } from 'node:fs';
import { Server } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { Server as TlsServer } from 'node:tls';
import { CodedError } from '../../../errors.js';
import { nodeHttp } from '../../../lib/index.js';
import type { FromLoop, ListenAnswer, ListenQuery } from '../../protocol.js';
import { boardAt, maxSockets, type Row } from '../../shared/board.js';
import { errnoOf } from '../../shared/errno.js';
import type { Link } from '../../shared/link.js';
import type { Listenable } from '../../shared/socket-handle.js';
import type { AppSettings, LoopSystem } from '../../tickets.js';
import { refuseUnused } from '../app.js';
import { receiveUntil } from '../in-call.js';
import { prepareForProgram } from '../unchanged.js';
import { type Client, type Inbox, openInbox } from './inbox.js';
import { type HandleEvents, ListenHandle, type ListenOwner } from './listen-handle.js';

/** The result of a second `listen()` on one socket. */
const addressInUse = errnoOf('EADDRINUSE');
interface Answered {
  readonly answer: ListenAnswer;
  readonly socket: Listenable | undefined;
}

type ServerDone = (errno: number, handle?: ListenHandle) => void;

export interface ListeningOptions {
  readonly process: number;
  readonly index: number;
  readonly system: LoopSystem;
  readonly app: AppSettings;
  readonly up: Link<FromLoop>;
  /** Called when a server listens; `hasPort` is false for a path. */
  readonly onListening: (server: unknown, hasPort: boolean) => void;
  /** Called before each connection with the time since which it waits (`OnClient`). */
  readonly onTake: ((sinceMs: number) => void) | undefined;
  /** Called before the first connection (`LoopOptions`). */
  readonly onFirstClient: (() => void) | undefined;
  /** Called when a program listens that has options only for exported apps. */
  readonly onRefused: (error: unknown) => void;
  /** Called when no `listen()` of the program waits for its answer any more. */
  readonly onAllAnswered: () => void;
  /** Called when a connection was closed. */
  readonly onConnectionClosed: () => void;
}

/** The listening servers of a loop: gets their sockets from the supervisor, and takes connections for them. */
export class Listening {
  readonly inbox: Inbox;
  readonly row: Row;
  readonly #options: ListeningOptions;
  /** By socket. Several when parts of the program share it: they get connections in turn. */
  readonly #handles: ListenHandle[][] = Array.from({ length: maxSockets }, () => []);
  /** Handles that get a connection only when no other is left for it. */
  readonly #quieted = new Set<ListenHandle>();
  /** By id of the request. */
  readonly #pending = new Map<
    number,
    (answer: ListenAnswer, socket: Listenable | undefined) => void
  >();
  #lastId = 0;
  /** Requests whose answers `#wait` waits for, and the answers. */
  readonly #awaited = new Map<number, Answered | undefined>();
  #hasClient = false;
  #bytesWritten = 0;
  /** The part of the program that owns its servers, but for those of which `#ownerOf` returns another. */
  readonly #program: ListenOwner = { group: '' };
  #ownerOf: (server: Server) => ListenOwner | undefined = () => undefined;
  /** Counts the calls of each owner for the same address. */
  readonly #indices = new WeakMap<ListenOwner, Map<string, number>>();
  /** Servers of the program's export, by socket. */
  readonly #exported = new Map<number, Server>();
  /** True: the next server that listens is the one of `listenForExport`. */
  #isExportNext = false;
  /** True: the program exports nothing that could listen, so it has to listen by itself. */
  #listensItself = false;

  /** Throws `NATIVE_MISSING`. */
  constructor(options: ListeningOptions) {
    this.#options = options;
    const { process: number, system, index } = options;
    this.inbox = openInbox(system, number, index, (socket, client, sinceMs) =>
      this.#connect(socket, client, sinceMs),
    );
    this.row = this.inbox.row;
  }

  /**
   * Makes servers of this thread listen here from now on. `cluster.worker.id`, for programs that would fork with
   * `cluster`, counts from 1 on, one for each loop.
   */
  takeOver(): void {
    prepareForProgram();
    Reflect.set(cluster, 'isWorker', true);
    Reflect.set(cluster, 'isPrimary', false);
    Reflect.set(cluster, 'isMaster', false);
    Reflect.set(cluster, '_getServer', this.#getServer);
    Reflect.set(cluster, 'worker', workerOf(this.row.number + 1));
  }

  /** Sets the function that returns the owner of a server, or `undefined` for the program. */
  setOwners(ownerOf: (server: Server) => ListenOwner | undefined): void {
    this.#ownerOf = ownerOf;
  }

  /** True: a `listen()` of the program waits for its answer. */
  get isPending(): boolean {
    return this.#pending.size > 0;
  }

  get hasListened(): boolean {
    return this.#lastId > 0;
  }

  /**
   * Calls `listen` for the program's export, which returns true when it makes a server listen. A server of the
   * program's own that listens on the same port later, when its database is ready, replaces that server.
   */
  listenForExport(listen: () => boolean): void {
    this.#isExportNext = true;
    this.#listensItself = !listen();
    if (this.#listensItself) this.#isExportNext = false;
  }

  /** In place of Node's function: requests a socket, and calls `done` with a handle for it. */
  readonly #getServer = (
    server: unknown,
    given: Record<string, unknown>,
    done: ServerDone,
  ): void => {
    const { app, up } = this.#options;
    refuseDescriptor(given['fd']);
    const owner = (server instanceof Server && this.#ownerOf(server)) || this.#program;
    const indices = this.#indices.get(owner) ?? new Map<string, number>();
    this.#indices.set(owner, indices);
    const query = queryOf(server, given, owner, indices);
    const isExport = this.#isExportNext;
    this.#isExportNext = false;
    if (this.#listensItself && !this.#isUsable(app)) return; // the process ends
    this.#lastId += 1;
    this.#pending.set(this.#lastId, (answer, socket) => {
      if ('errno' in answer) {
        done(answer.errno);
        return;
      }
      this.#exported.get(answer.number)?.close();
      if (isExport && server instanceof Server) this.#exported.set(answer.number, server);
      else this.#exported.delete(answer.number);
      this.#open(answer, server, owner, socket, done);
    });
    const id = this.#lastId;
    up.post({ id, body: { type: 'listen', query } });
    const answered = this.#wait(id);
    if (answered === undefined) return;
    // An error comes later, as in plain Node: the program has its listener by then.
    if ('errno' in answered.answer) this.#answer(id, answered);
    else {
      this.#pending.get(id)?.(answered.answer, answered.socket);
      process.nextTick(() => this.#noteAnswered(id));
    }
  };

  #isUsable(app: AppSettings): boolean {
    try {
      refuseUnused(app);
      return true;
    } catch (error) {
      this.#options.onRefused(error);
      return false;
    }
  }

  /**
   * Waits for an answer in this call of the program: plain Node binds in `listen()`, and programs read the address
   * behind it. Returns `undefined` where it comes later (`receiveUntil`).
   */
  #wait(id: number): Answered | undefined {
    this.#awaited.set(id, undefined);
    receiveUntil(this.#options.up, () => this.#awaited.get(id) !== undefined);
    const answered = this.#awaited.get(id);
    this.#awaited.delete(id);
    return answered;
  }

  /** Handles the supervisor's answer to a request. */
  receive(id: number, answer: ListenAnswer, socket: Listenable | undefined): void {
    if (this.#awaited.has(id)) this.#awaited.set(id, { answer, socket });
    else this.#answer(id, { answer, socket });
  }

  #answer(id: number, { answer, socket }: Answered): void {
    const answered = this.#pending.get(id);
    if (answered === undefined) return;
    // In a tick of its own: an error of the server's listeners is the program's.
    process.nextTick(answered, answer, socket);
    process.nextTick(() => this.#noteAnswered(id));
  }

  #noteAnswered(id: number): void {
    this.#pending.delete(id);
    if (!this.isPending) this.#options.onAllAnswered();
  }

  #open(
    { number, address, ticketKeys }: Exclude<ListenAnswer, { errno: number }>,
    server: unknown,
    owner: ListenOwner,
    socket: Listenable | undefined,
    done: ServerDone,
  ): void {
    if (this.#handles[number]?.some((each) => each.owner === owner) === true) {
      this.inbox.discard(socket);
      done(addressInUse);
      return;
    }
    if (server instanceof TlsServer && ticketKeys !== undefined) {
      server.setTicketKeys(Buffer.from(ticketKeys, 'hex'));
    }
    done(0, new ListenHandle(number, address, server, owner, socket, this.#events));
  }

  readonly #events: HandleEvents = {
    onListen: (handle, server, backlog) => this.#listens(handle, server, backlog),
    onClose: (handle) => this.#closed(handle),
    onRef: () => this.#hold(),
    onConnectionClosed: (bytesWritten, fd) => this.#connectionClosed(bytesWritten, fd),
  };

  #listens(handle: ListenHandle, server: unknown, backlog: number): number {
    const error = this.inbox.listen(handle.number, handle.takeSocket(), backlog);
    if (error !== 0) return error;
    this.#handles[handle.number]?.push(handle);
    if (server instanceof nodeHttp().Server) this.row.or(boardAt.speaksHttp, 1 << handle.number);
    this.#publish();
    this.#hold();
    this.#options.onListening(server, handle.getsockname !== undefined);
    return 0;
  }

  /** Takes no more connections for `server`, unless no other is left for them (`ProgramLoop.quiet`). */
  async quiet(server: Server): Promise<void> {
    const handle = this.#handles.flat().find((each) => each.serves(server));
    if (handle === undefined) return;
    const { number } = handle;
    this.#quieted.add(handle);
    this.#publish();
    // Takes connections that were placed meanwhile in the next turns, unless another server listens there.
    while (!this.#isWanted(number) && !this.inbox.isDoneWith(number)) await setImmediate();
  }

  /** True: a handle of this loop takes connections of a socket. */
  #isWanted(number: number): boolean {
    return this.#handles[number]?.some((each) => !this.#quieted.has(each)) === true;
  }

  #closed(handle: ListenHandle): void {
    const { number } = handle;
    this.#quieted.delete(handle);
    const others = this.#handles[number]?.filter((each) => each !== handle) ?? [];
    this.#handles[number] = others;
    if (others.length === 0) {
      const http = this.row.get(boardAt.speaksHttp);
      this.row.set(boardAt.speaksHttp, http & ~(1 << number)); // a number is used again
    }
    this.#publish();
    this.#hold();
    // Deferred, because another server may replace this one.
    process.nextTick(() => {
      if (this.#handles[number]?.length !== 0) return;
      this.#options.up.post({ body: { type: 'unlisten', number } });
    });
  }

  /** Publishes to the inbox from which sockets this loop takes connections. */
  #publish(): void {
    let bits = 0;
    for (const number of this.#handles.keys()) {
      if (this.#isWanted(number)) bits |= 1 << number;
    }
    this.row.set(boardAt.listens, bits);
    this.inbox.wake();
  }

  #hold(): void {
    this.inbox.hold(this.#handles.some((handles) => handles.some((each) => each.hasRef())));
  }

  #connect(number: number, client: Client, sinceMs: number): void {
    if (!this.#hasClient) {
      this.#hasClient = true;
      this.#options.onFirstClient?.();
    }
    const handle = this.#nextHandle(number);
    if (handle === undefined) {
      // The program has closed the server since this was placed.
      if (typeof client === 'number') closeSync(client);
      else client.close();
      this.#connectionClosed(0, -1);
      return;
    }
    this.#options.onTake?.(sinceMs);
    try {
      handle.connect(client);
    } catch (error) {
      process.nextTick(() => {
        throw error;
      });
    }
  }

  /** Returns the first handle that takes connections, and moves it to the end of the row. */
  #nextHandle(number: number): ListenHandle | undefined {
    const handles = this.#handles[number] ?? [];
    if (handles.length < 2) return handles[0];
    const at = handles.findIndex((each) => !this.#quieted.has(each));
    const [next] = handles.splice(Math.max(at, 0), 1);
    if (next !== undefined) handles.push(next);
    return next;
  }

  #connectionClosed(bytesWritten: number, fd: number): void {
    this.inbox.idle.leave(fd);
    this.row.add(boardAt.open, -1);
    this.#bytesWritten += bytesWritten;
    this.row.set(boardAt.kibWritten, this.#bytesWritten / 1024);
    this.#options.onConnectionClosed();
  }
}

/** Makes a `Worker` as `cluster` does in its workers, but without a channel to a primary: `send()` fails. */
function workerOf(id: number): object {
  const Worker: unknown = Reflect.get(cluster, 'Worker');
  if (typeof Worker !== 'function') return { id, process };
  return Reflect.construct(Worker, [{ id, process, state: 'online' }]);
}

/** Rejects `listen({ fd })`: the processes of a server do not inherit the descriptors of its supervisor. */
function refuseDescriptor(fd: unknown): void {
  if (typeof fd !== 'number' || fd < 0) return;
  throw new CodedError(
    'OPTION_INVALID',
    `listen({ fd: ${fd} }) is not possible in a served program, which does not inherit the descriptor: listen on ` +
      'its port or path, and manycore serve uses a socket of systemd for it (listenFds of serve())',
  );
}

function queryOf(
  server: unknown,
  given: Record<string, unknown>,
  { group }: ListenOwner,
  indices: Map<string, number>,
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
