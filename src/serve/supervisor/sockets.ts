// The listening sockets of a server: bound by the supervisor, which keeps them open until no program
// listens on them any more, so that no reload and no crash of a process loses a connection that waits in
// the kernel's queue. All processes and loops that listen on the same address get the same socket.
// Not here: how sockets are opened (native/socket-opener.ts, portable/socket-opener.ts).

import { CodedError } from '../../errors.js';
import { messageOf } from '../../lib/index.js';
import type { BoundAddress, ListenAnswer, ListenQuery } from '../protocol.js';
import { maxSockets } from '../shared/board.js';
import { errnoOf } from '../shared/errno.js';
import { type HandedSocket, listenKey, waitingKey } from '../shared/handover.js';
import type { Listenable } from '../shared/socket-handle.js';

export interface OpenSocket {
  readonly address: BoundAddress;
  /** Number of its queues in the kernel, one for each process that has had one; 0 when all use one. */
  readonly queues: number;
  /** Number of connections that wait to be accepted; 0 where that is not known. */
  readonly waitingConnections: number;
  /** Returns the socket with this queue and this number; stays the opener's. Throws the system's error. */
  of(queue: number, number: number): Listenable;
  /** Closes the queue of a process that leaves, where each process has a queue of its own: others get what waits. */
  readonly leave?: ((queue: number) => void) | undefined;
  /** Ticket keys that its servers had before; `undefined`: those of its first server. */
  readonly ticketKeys?: string | undefined;
  /** Returns the descriptors for a successor, which stay the opener's; missing: they cannot be handed over. */
  readonly handOut?: (() => HandedOut) | undefined;
  /** Accepts nothing any more: the successor gets the clients that wait here. Resolves when it has them. */
  readonly handOver?: (() => Promise<void>) | undefined;
  /** Refuses clients from now on, unless this process has inherited the socket or a successor has it. */
  close(): void;
}

/** Descriptors of a socket, with details for a successor. */
export interface HandedOut extends Pick<HandedSocket, 'isShared' | 'isInherited'> {
  readonly fds: readonly number[];
  /** Unix socket over which `handOver` sends clients. */
  readonly waitingFd?: number | undefined;
}

/** Opens listening sockets. */
export interface SocketOpener {
  /** Adds inherited listening sockets. Rejects for other descriptors. */
  inherit(fds: readonly number[]): Promise<void>;
  /** Takes an inherited socket, or binds a new one. Rejects with the system's error. */
  open(query: ListenQuery): Promise<OpenSocket>;
  /** Inherited sockets that no program has; missing: sockets cannot be handed over. */
  unused?(): readonly Pick<HandedSocket, 'fd' | 'address'>[];
  /** A successor has the sockets: the paths of Unix sockets stay. */
  keepPaths?(): void;
  /** Closes what it still has. */
  close(): void;
}

interface BoundSocket {
  readonly number: number;
  readonly query: ListenQuery;
  /** Keys of the queries that it answers. */
  readonly keys: Set<string>;
  readonly socket: OpenSocket;
  /** Ticket keys of the first server that listened. */
  readonly ticketKeys: string | undefined;
}

const tooManyFiles = errnoOf('EMFILE');
const invalidArgument = errnoOf('EINVAL');
/** Limit for a program that listens on port 0 again and again. */
const maxChosen = 1024;

export class Sockets {
  readonly #opener: SocketOpener;
  readonly #byKey = new Map<string, Promise<BoundSocket>>();
  /**
   * Ports that the system has chosen for port 0, by key. A program may close such a server and listen on the number:
   * its loops do so at different times, and have to get the same port nevertheless.
   */
  readonly #chosen: Map<string, number>;
  /** By number. */
  readonly #bound: (BoundSocket | undefined)[] = [];
  readonly #onBound: (address: BoundAddress) => void;
  #isClosed = false;

  /**
   * `onBound` is called with the address of each socket that is opened. `chosen` are ports that a predecessor has got
   * for port 0.
   */
  constructor(
    opener: SocketOpener,
    onBound: (address: BoundAddress) => void = () => {},
    chosen: Map<string, number> = new Map(),
  ) {
    this.#opener = opener;
    this.#onBound = onBound;
    this.#chosen = chosen;
  }

  /** Adds inherited sockets (`SocketOpener.inherit`). */
  inherit(fds: readonly number[]): Promise<void> {
    return this.#opener.inherit(fds);
  }

  get #all(): readonly BoundSocket[] {
    return this.#bound.filter((bound) => bound !== undefined);
  }

  get numbers(): readonly number[] {
    return this.#all.map(({ number }) => number);
  }

  get addresses(): readonly BoundAddress[] {
    return this.#all.map(({ socket }) => socket.address);
  }

  /** Returns the socket with this number and queue (`OpenSocket.of`). */
  of(number: number, queue: number): Listenable {
    const bound = this.#bound[number];
    if (bound === undefined) throw new CodedError('INTERNAL_STATE', `there is no socket ${number}`);
    return bound.socket.of(queue, number);
  }

  /** Closes the queues of a process that leaves (`OpenSocket.leave`). */
  leave(queue: number): void {
    for (const { socket } of this.#all) socket.leave?.(queue);
  }

  /** Number of connections that wait to be accepted. */
  get waitingConnections(): number {
    return this.#all.reduce((sum, { socket }) => sum + socket.waitingConnections, 0);
  }

  /** Number of processes that have had sockets of their own; 0 when all use one. */
  get queues(): number {
    return Math.max(0, ...this.#all.map(({ socket }) => socket.queues));
  }

  /**
   * Returns the socket for `query` of the process with this queue; the first call binds it. Never rejects.
   */
  async listen(query: ListenQuery, queue: number): Promise<ListenAnswer> {
    const key = keyOf(query);
    let bound = this.#byKey.get(key);
    if (bound === undefined) {
      bound = this.#sameAddress(query) ?? this.#bind(query);
      this.#byKey.set(key, bound);
      bound.catch(() => this.#byKey.delete(key)); // the next call tries again
    }
    try {
      const { number, socket, ticketKeys } = await bound;
      this.of(number, queue);
      return { number, address: socket.address, ticketKeys };
    } catch (error) {
      const { errno, syscall }: { errno?: unknown; syscall?: unknown } = Object(error);
      const reason = syscall === undefined ? messageOf(error) : undefined;
      return { errno: typeof errno === 'number' ? errno : invalidArgument, reason };
    }
  }

  /** Returns the socket on the port of `query`, also when it was opened for port 0, or for that number. */
  #sameAddress(query: ListenQuery): Promise<BoundSocket> | undefined {
    const { address, addressType } = query;
    const port = query.port === 0 ? this.#chosen.get(keyOf(query)) : query.port;
    const same = this.#all.find(({ socket, query: other }) => {
      const isSame = other.address === address && other.addressType === addressType;
      return isSame && typeof socket.address !== 'string' && socket.address.port === port;
    });
    same?.keys.add(keyOf(query));
    return same && Promise.resolve(same);
  }

  /** Opens a socket; for port 0 again on the port that was chosen before, if that is free. */
  async #open(query: ListenQuery): Promise<OpenSocket> {
    const chosen = query.port === 0 ? this.#chosen.get(keyOf(query)) : undefined;
    if (chosen !== undefined) {
      try {
        return await this.#opener.open({ ...query, port: chosen });
      } catch {
        // It belongs to another program now.
      }
    }
    const socket = await this.#opener.open(query);
    const isChosen = query.port === 0 && typeof socket.address !== 'string';
    if (isChosen) this.#chosen.set(keyOf(query), socket.address.port);
    const [oldest] = this.#chosen.keys();
    if (this.#chosen.size > maxChosen && oldest !== undefined) this.#chosen.delete(oldest);
    return socket;
  }

  async #bind(query: ListenQuery): Promise<BoundSocket> {
    const socket = await this.#open(query);
    try {
      if (this.#isClosed) throw new CodedError('SERVE_CLOSED', 'the server is closed');
      return this.#keep(socket, query);
    } catch (error) {
      socket.close();
      throw error;
    }
  }

  #keep(socket: OpenSocket, query: ListenQuery): BoundSocket {
    const free = this.#bound.indexOf(undefined);
    const number = free < 0 ? this.#bound.length : free;
    if (number >= maxSockets) {
      throw Object.assign(new CodedError('OPTION_INVALID', `more than ${maxSockets} sockets`), {
        errno: tooManyFiles,
      });
    }
    const keys = new Set([keyOf(query)]);
    const ticketKeys = socket.ticketKeys ?? query.ticketKeys;
    const bound = { socket, number, query, keys, ticketKeys };
    this.#bound[number] = bound;
    this.#onBound(socket.address);
    return bound;
  }

  /** Closes a socket without listeners: clients are refused. An inherited socket is kept. */
  release(number: number): void {
    const bound = this.#bound[number];
    if (bound === undefined) return;
    this.#bound[number] = undefined;
    bound.socket.close();
    for (const key of bound.keys) this.#byKey.delete(key);
  }

  /** Ports that the system has chosen for port 0, by the key of the query. */
  get chosen(): ReadonlyMap<string, number> {
    return this.#chosen;
  }

  /** All sockets for a successor; their descriptors stay the opener's. Throws `SERVE_UPGRADE_FAILED`. */
  handOut(): HandedSocket[] {
    const unused = this.#opener.unused?.();
    if (unused === undefined) throw cannotHandOut();
    const used = this.#all.flatMap(({ socket, query, ticketKeys }) => {
      const { address } = socket;
      const given = socket.handOut?.();
      if (given === undefined) throw cannotHandOut();
      const { fds, waitingFd, isShared, isInherited } = given;
      const port = typeof address === 'string' ? query.port : address.port;
      const details = { address, isShared, isInherited, ticketKeys };
      const handed = fds.map((fd) => ({ key: listenKey(query, port), fd, ...details }));
      if (waitingFd === undefined) return handed;
      const key = waitingKey(query, port);
      return [...handed, { key, fd: waitingFd, address, isShared: false, isInherited: false }];
    });
    const kept = unused.map((socket) => ({
      ...socket,
      key: '',
      isShared: false,
      isInherited: true,
    }));
    return [...used, ...kept];
  }

  /** Accepts nothing any more; see `OpenSocket.handOver`. */
  async handOver(): Promise<void> {
    await Promise.all(this.#all.map(({ socket }) => socket.handOver?.()));
  }

  /** A successor has the sockets: `close` leaves the paths of Unix sockets to it. */
  keepPaths(): void {
    this.#opener.keepPaths?.();
  }

  /** Closes all sockets, and removes the paths of Unix sockets. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const { socket } of this.#all) socket.close();
    this.#opener.close();
  }
}

function cannotHandOut(): CodedError {
  const message =
    'a server without the native core cannot hand its sockets over: reload it, or stop it and start it again';
  return new CodedError('SERVE_UPGRADE_FAILED', message);
}

function keyOf({ address, port, addressType, index, group = '' }: ListenQuery): string {
  return `${address}:${port}:${addressType}:${index}:${group}`;
}
