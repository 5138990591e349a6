// The listening sockets of a server: bound by the supervisor, which keeps them open until no program
// listens on them any more, so that no reload and no crash of a process loses a connection that waits in
// the kernel's queue. All processes and loops that listen on the same address get the same socket.

import { closeSync, existsSync, renameSync, rmSync, statSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { CodedError } from '../../errors.js';
import { messageOf } from '../../lib/index.js';
import { callNative, type NativeDescriptors, requireNative } from '../../native.js';
import type { BoundAddress, ListenAnswer, ListenQuery } from '../protocol.js';
import { maxSockets } from '../shared/board.js';
import { joinPort } from './shared-ports.js';

/** A socket without a number yet. */
interface Opened {
  readonly address: BoundAddress;
  /** Opens one more socket that shares the port; missing when all processes use one. */
  readonly listenAgain?: ListenAgain;
  /** Releases its other resources: a path, its membership in a shared port. */
  readonly onRelease?: (() => void) | undefined;
  /** True: this process has inherited it. */
  readonly isInherited?: boolean | undefined;
}

interface OpenedWithFd extends Opened {
  /** Owned by `Sockets`. */
  readonly fd: number;
}

export interface BoundSocket extends Opened {
  readonly number: number;
  readonly key: string;
  /** Ticket keys of the first server that listened. */
  readonly ticketKeys: string | undefined;
  /** Owned by `Sockets`: one, or one for each process (`reuseport`). */
  readonly fds: (number | undefined)[];
}

type ListenAgain = (() => number) | undefined;

/** Error numbers of libuv: `EMFILE`, `EINVAL`. */
const tooManyFiles = -24;
const invalidArgument = -22;
/** Node's default. */
const defaultBacklog = 511;

export class Sockets {
  readonly #descriptors: NativeDescriptors;
  readonly #byKey = new Map<string, Promise<BoundSocket>>();
  /** By number. */
  readonly #bound: (BoundSocket | undefined)[] = [];
  /** Inherited sockets, until a program listens on their address. */
  readonly #inherited: Inherited[] = [];
  readonly #isShared: boolean;
  readonly #serverNames: readonly string[];
  #isClosed = false;

  /**
   * `isShared`: each process gets a socket of its own, if possible. With `serverNames` ports are shared with
   * other apps of this process instead. Throws `NATIVE_MISSING`.
   */
  constructor(isShared: boolean, serverNames: readonly string[]) {
    this.#isShared = isShared && serverNames.length === 0;
    this.#serverNames = serverNames;
    this.#descriptors = new (requireNative().NativeDescriptors)();
  }

  /** Adds inherited listening sockets; resolves with their addresses. Rejects for other descriptors. */
  async inherit(fds: readonly number[]): Promise<BoundAddress[]> {
    for (const fd of fds) {
      // The server closes its descriptor at its end: it gets a duplicate.
      const copy = callNative(() => this.#descriptors.release(this.#descriptors.duplicate(fd)));
      const kept = callNative(() => this.#descriptors.duplicate(fd));
      this.#inherited.push({ fd: kept, address: await addressBehind(copy, fd) });
    }
    return this.#inherited.map(({ address }) => address);
  }

  get all(): readonly BoundSocket[] {
    return this.#bound.filter((bound) => bound !== undefined);
  }

  /**
   * The descriptor of socket `number` with this queue in the kernel; the same for all queues when processes
   * have no sockets of their own. Throws the system's error.
   */
  fdOf(number: number, queue: number): number {
    const bound = this.#bound[number];
    if (bound === undefined) throw new CodedError('INTERNAL_STATE', `there is no socket ${number}`);
    const { fds, listenAgain } = bound;
    if (listenAgain === undefined) return fds[0] ?? -1;
    const fd = fds[queue] ?? listenAgain();
    fds[queue] = fd;
    return fd;
  }

  /** Number of connections that wait to be accepted. */
  get waitingConnections(): number {
    const fds = this.all.flatMap((bound) => bound.fds.filter((fd) => fd !== undefined));
    return fds.reduce((sum, fd) => sum + requireNative().acceptQueue(fd), 0);
  }

  /** Number of processes that have had sockets of their own; 0 when all use one. */
  get queues(): number {
    const own = this.all.filter(({ listenAgain }) => listenAgain !== undefined);
    return Math.max(0, ...own.map(({ fds }) => fds.length));
  }

  /**
   * Returns the socket for `query` of the process with this queue; the first call binds it. Never rejects.
   */
  async listen(query: ListenQuery, queue: number): Promise<ListenAnswer> {
    const key = keyOf(query);
    let bound = this.#byKey.get(key);
    if (bound === undefined) {
      bound = this.#bind(query);
      this.#byKey.set(key, bound);
      bound.catch(() => this.#byKey.delete(key)); // the next call tries again
    }
    try {
      const { number, address, ticketKeys } = await bound;
      this.fdOf(number, queue);
      return { number, address, ticketKeys };
    } catch (error) {
      const { errno, syscall }: { errno?: unknown; syscall?: unknown } = Object(error);
      const reason = syscall === undefined ? messageOf(error) : undefined;
      return { errno: typeof errno === 'number' ? errno : invalidArgument, reason };
    }
  }

  async #bind(query: ListenQuery): Promise<BoundSocket> {
    if (query.port < 0) await removeLeftPath(query.address);
    const isNamed = query.port >= 0 && this.#serverNames.length > 0;
    const opened = await (isNamed ? this.#join(query) : this.#open(query));
    try {
      if (this.#isClosed) throw new CodedError('SERVE_CLOSED', 'the server is closed');
      return this.#keep(opened, query);
    } catch (error) {
      this.#releaseSockets(opened, [opened.fd]);
      throw error;
    }
  }

  #releaseSockets({ address, isInherited, onRelease }: Opened, fds: BoundSocket['fds']): void {
    for (const fd of fds) {
      if (fd === undefined) continue;
      if (isInherited === true) this.#inherited.push({ fd, address });
      else closeSync(callNative(() => this.#descriptors.release(fd)));
    }
    onRelease?.();
  }

  async #join(query: ListenQuery): Promise<OpenedWithFd> {
    const joined = await joinPort(query, this.#serverNames, async () => {
      const { address, fd } = await this.#open(query);
      return { address, fd: callNative(() => this.#descriptors.release(fd)) };
    });
    const fd = callNative(() => this.#descriptors.duplicate(joined.fd));
    return { address: joined.address, fd, onRelease: () => joined.leave() };
  }

  /** Takes an inherited socket, or opens a new one; owns the descriptor. */
  #open(query: ListenQuery): Promise<OpenedWithFd> {
    const { address, port, backlog, isV6Only } = query;
    const at = this.#inherited.findIndex((inherited) => isRequested(inherited.address, query));
    const [inherited] = at < 0 ? [] : this.#inherited.splice(at, 1);
    if (inherited !== undefined) {
      const known = inherited.address === '' ? (address ?? '') : inherited.address;
      return Promise.resolve({ address: known, fd: inherited.fd, isInherited: true });
    }
    // By Node itself, so that addresses and errors are its own.
    return new Promise((resolve, reject) => {
      const server = createServer();
      server.once('error', reject);
      const isPath = port < 0 && address !== null;
      const where = isPath ? { path: address } : { port, host: address ?? undefined };
      server.listen({ ...where, backlog: backlog || undefined, ipv6Only: isV6Only }, () => {
        // Nothing was accepted yet: that happens in a later turn of the event loop.
        try {
          const at = addressOf(server.address());
          if (this.#isShared && typeof at !== 'string') {
            server.close(); // its success shows that the port is free
            const listenAgain = () => this.#listenShared(at, query);
            resolve({ address: at, fd: listenAgain(), listenAgain });
          } else {
            const fd = callNative(() => this.#descriptors.duplicate(fdOf(server)));
            const remove = () => rmSync(address ?? '', { force: true });
            resolve({ address: at, fd, onRelease: isPath ? remove : undefined });
          }
        } catch (error) {
          reject(error);
        } finally {
          if (server.listening) closeKeepingPath(server, isPath ? address : undefined);
        }
      });
    });
  }

  /** Throws the system's error. */
  #listenShared({ address, port }: Exclude<BoundAddress, string>, query: ListenQuery): number {
    const backlog = query.backlog || defaultBacklog;
    const fd = this.#descriptors.listenShared(address, port, backlog, query.isV6Only);
    if (fd >= 0) return fd;
    throw Object.assign(new Error('no socket that shares its port'), { errno: fd });
  }

  #keep({ fd, ...opened }: OpenedWithFd, query: ListenQuery): BoundSocket {
    const free = this.#bound.indexOf(undefined);
    const number = free < 0 ? this.#bound.length : free;
    if (number >= maxSockets) {
      throw Object.assign(new CodedError('OPTION_INVALID', `more than ${maxSockets} sockets`), {
        errno: tooManyFiles,
      });
    }
    const { ticketKeys } = query;
    const bound = { ...opened, number, key: keyOf(query), ticketKeys, fds: [fd] };
    this.#bound[number] = bound;
    return bound;
  }

  /** Closes a socket without listeners: clients are refused. An inherited socket is kept. */
  release(number: number): void {
    const bound = this.#bound[number];
    if (bound === undefined) return;
    this.#bound[number] = undefined;
    this.#byKey.delete(bound.key);
    this.#releaseSockets(bound, bound.fds);
  }

  /** Closes all sockets, and removes the paths of Unix sockets. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#descriptors.closeAll();
    for (const { onRelease } of this.all) onRelease?.();
  }
}

function keyOf({ address, port, addressType, index, group = '' }: ListenQuery): string {
  return `${address}:${port}:${addressType}:${index}:${group}`;
}

interface Inherited {
  readonly fd: number;
  readonly address: BoundAddress;
}

/**
 * Compares ports alone: a program that listens on all addresses may get one of them. Node returns no path
 * for a Unix socket that it has not bound itself, so the first program that listens on a path gets it.
 */
function isRequested(inherited: BoundAddress, { port }: ListenQuery): boolean {
  return typeof inherited === 'string' ? port < 0 : inherited.port === port;
}

/** Returns the address of a listening socket, and closes the descriptor. */
function addressBehind(fd: number, given: number): Promise<BoundAddress> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', (cause) => {
      const message = `descriptor ${given} is no listening socket: ${messageOf(cause)}`;
      reject(new CodedError('OPTION_INVALID', message, { cause }));
    });
    // As in `#bind`: nothing is accepted before the next turn of the event loop.
    server.listen({ fd, exclusive: true }, () => {
      const address = addressOf(server.address());
      server.close();
      resolve(address);
    });
  });
}

/** Removes the path that a killed server has left. */
async function removeLeftPath(path: string | null): Promise<void> {
  if (path === null || !existsSync(path) || !statSync(path).isSocket()) return;
  const isLeft = await new Promise<boolean>((resolve) => {
    const socket = connect(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve(false);
    });
    socket.once('error', (error: { code?: string }) => resolve(error.code === 'ECONNREFUSED'));
  });
  if (isLeft) rmSync(path, { force: true });
}

function fdOf(server: Server): number {
  const handle: unknown = Reflect.get(server, '_handle');
  const fd: unknown = Reflect.get(Object(handle), 'fd');
  if (typeof fd === 'number') return fd;
  throw new CodedError(
    'SERVE_START_FAILED',
    'this runtime does not expose the descriptors of its sockets',
  );
}

/** Keeps the path of a Unix socket that is still in use: Node would remove it. */
function closeKeepingPath(server: Server, path: string | undefined): void {
  const aside = `${path}.${process.pid}`;
  if (path !== undefined) renameSync(path, aside);
  server.close();
  if (path !== undefined) renameSync(aside, path);
}

function addressOf(address: ReturnType<Server['address']>): BoundAddress {
  if (address === null) return '';
  if (typeof address === 'string') return address;
  const { address: host, port, family } = address;
  return { address: host, port, family: family === 'IPv6' ? 'IPv6' : 'IPv4' };
}
