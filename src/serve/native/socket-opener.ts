// Listening sockets as descriptors: the listener threads of processes get duplicates. Also those that this
// process has inherited, those that share a port (`reuseport`), and the ports of apps with names.

import { closeSync, renameSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { CodedError } from '../../errors.js';
import { messageOf, ownListening, serverFd } from '../../lib/index.js';
import { callNative, type NativeDescriptors, requireNative } from '../../native.js';
import type { BoundAddress, ListenQuery } from '../protocol.js';
import { type HandedSocket, listenKey, type Predecessor, waitingKey } from '../shared/handover.js';
import { removeLeftPath } from '../shared/left-path.js';
import type { HandedOut, OpenSocket, SocketOpener } from '../supervisor/sockets.js';
import { type JoinedPort, type JoinOptions, joinPort } from './shared-ports.js';

interface Opened {
  readonly address: BoundAddress;
  /** Owned by the opener. */
  readonly fd: number;
  /** Further sockets that share the port; owned by the opener. */
  readonly others?: readonly number[] | undefined;
  readonly ticketKeys?: string | undefined;
  /** Opens one more socket that shares the port; missing when all processes use one. */
  readonly listenAgain?: (() => number) | undefined;
  /** Releases its other resources: a path, its membership in a shared port. */
  readonly onRelease?: (() => void) | undefined;
  /** True: this process has inherited it. */
  readonly isInherited?: boolean | undefined;
}

/** Node's default. */
const defaultBacklog = 511;

export class NativeSocketOpener implements SocketOpener {
  readonly #descriptors: NativeDescriptors;
  /** Inherited sockets, until a program listens on their address. */
  readonly #inherited: Inherited[] = [];
  readonly #isShared: boolean;
  readonly #router: JoinOptions;
  readonly #predecessor: Predecessor | undefined;
  #isClosed = false;
  #keepsPaths = false;

  /**
   * `isShared`: each process gets a socket of its own, if possible. With names ports are shared with other apps of
   * this process instead. Throws `NATIVE_MISSING`.
   */
  constructor(isShared: boolean, router: JoinOptions, predecessor?: Predecessor) {
    this.#isShared = isShared && router.names.length === 0;
    this.#router = router;
    this.#predecessor = predecessor;
    this.#descriptors = new (requireNative().NativeDescriptors)();
  }

  async inherit(fds: readonly number[]): Promise<void> {
    for (const fd of fds) {
      // The server closes its descriptor at its end: it gets a duplicate.
      const copy = callNative(() => this.#descriptors.release(this.#descriptors.duplicate(fd)));
      const kept = callNative(() => this.#descriptors.duplicate(fd));
      this.#inherited.push({ fd: kept, address: await addressBehind(copy, fd) });
    }
  }

  async open(query: ListenQuery): Promise<OpenSocket> {
    const isHanded = this.#predecessor?.has(listenKey(query, query.port)) === true;
    if (query.port < 0 && !isHanded) await removeLeftPath(query.address);
    const { names, sticky } = this.#router;
    if (query.port >= 0 && sticky !== undefined) return await this.#joinSticky(query);
    // Without names any more, the app still gets the clients that wait for its predecessor.
    const hasWaiting = this.#predecessor?.has(waitingKey(query, query.port)) === true;
    const isNamed = query.port >= 0 && names.length > 0;
    if (isNamed || hasWaiting) return await this.#join(query);
    const opened = await this.#open(query);
    const fds: (number | undefined)[] = [opened.fd, ...(opened.others ?? [])];
    const { address, listenAgain, ticketKeys } = opened;
    return {
      address,
      get queues() {
        return listenAgain === undefined ? 0 : fds.length;
      },
      get waitingConnections() {
        const { acceptQueue } = requireNative();
        return fds.reduce<number>((sum, fd) => sum + (fd === undefined ? 0 : acceptQueue(fd)), 0);
      },
      of: (queue) => {
        if (listenAgain === undefined) return { fd: opened.fd };
        const fd = fds[queue] ?? listenAgain();
        fds[queue] = fd;
        return { fd };
      },
      ticketKeys,
      handOut: () => handedOut(opened, fds),
      close: () => this.#release(opened, fds),
    };
  }

  #release({ address, isInherited, onRelease }: Opened, fds: readonly (number | undefined)[]) {
    for (const fd of fds) {
      if (fd === undefined) continue;
      if (isInherited === true && !this.#isClosed) this.#inherited.push({ fd, address });
      else closeSync(callNative(() => this.#descriptors.release(fd)));
    }
    onRelease?.();
  }

  #joinPort(query: ListenQuery): Promise<JoinedPort> {
    return joinPort(query, this.#router, async () => {
      const predecessor = this.#predecessor;
      const { address, fd, others = [], isInherited = false, ticketKeys } = await this.#open(query);
      if (others.length > 0) {
        const message =
          'each process has a socket of its own (reuseport): sticky and serverNames need a restart';
        throw new CodedError('SERVE_UPGRADE_FAILED', message);
      }
      return {
        address,
        fd: callNative(() => this.#descriptors.release(fd)),
        isInherited,
        ticketKeys,
        waitingFd: predecessor?.take(waitingKey(query, query.port))[0]?.fd,
        onceAlone: (callback) => {
          if (predecessor === undefined) callback();
          else predecessor.onceLeft(callback);
        },
      };
    });
  }

  /** Each process gets a control socket of its own: its queue is its number. */
  async #joinSticky(query: ListenQuery): Promise<OpenSocket> {
    const joined = await this.#joinPort(query);
    const { address, ticketKeys, ofProcess, leaveProcess, handOut, handOver, leave } = joined;
    return {
      address,
      ticketKeys: this.#router.names.length === 0 ? ticketKeys : undefined,
      queues: 0, // no process takes over that of another
      waitingConnections: 0,
      of: (queue, number) => ({ fd: ofProcess(queue, number) }),
      leave: leaveProcess,
      handOut,
      handOver,
      close: leave,
    };
  }

  /** All processes receive from one control socket. */
  async #join(query: ListenQuery): Promise<OpenSocket> {
    const { address, fd, handOut, handOver, leave } = await this.#joinPort(query);
    return {
      address,
      queues: 0,
      get waitingConnections() {
        return requireNative().acceptQueue(fd);
      },
      of: () => ({ fd }),
      handOut,
      handOver,
      close: leave,
    };
  }

  /** Takes a socket of the predecessor or an inherited one, or opens a new one; owns the descriptor. */
  #open(query: ListenQuery): Promise<Opened> {
    const { address, port, backlog, isV6Only } = query;
    const handed = this.#predecessor?.take(listenKey(query, port)) ?? [];
    const [first, ...others] = handed.map((socket) => this.#adopt(socket));
    if (first !== undefined) return Promise.resolve(this.#openHanded(first, others, query));
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
            resolve({ address: at, fd, onRelease: isPath ? this.#removing(address) : undefined });
          }
        } catch (error) {
          reject(error);
        } finally {
          if (server.listening) closeKeepingPath(server, isPath ? address : undefined);
        }
      });
    });
  }

  /** Takes the descriptor over, for one that programs do not inherit. */
  #adopt({ fd, ...others }: HandedSocket): HandedSocket {
    try {
      return { ...others, fd: callNative(() => this.#descriptors.duplicate(fd)) };
    } finally {
      closeSync(fd);
    }
  }

  #openHanded(first: HandedSocket, others: readonly HandedSocket[], query: ListenQuery): Opened {
    const { fd, address, isShared, ticketKeys } = first;
    const isPath = typeof address === 'string';
    return {
      address,
      fd,
      others: others.map((other) => other.fd),
      ticketKeys,
      listenAgain: isShared && !isPath ? () => this.#listenShared(address, query) : undefined,
      onRelease: isPath ? this.#removing(address) : undefined,
    };
  }

  /** Removes a path, unless another process serves at it. */
  #removing(path: string): () => void {
    return () => {
      const isOurs = !this.#keepsPaths && this.#predecessor?.hasLeft !== false;
      if (isOurs) rmSync(path, { force: true });
    };
  }

  /** Throws the system's error. */
  #listenShared({ address, port }: Exclude<BoundAddress, string>, query: ListenQuery): number {
    const backlog = query.backlog || defaultBacklog;
    const fd = this.#descriptors.listenShared(address, port, backlog, query.isV6Only);
    if (fd >= 0) return fd;
    throw Object.assign(new Error('no socket that shares its port'), { errno: fd });
  }

  unused(): readonly Inherited[] {
    return this.#inherited;
  }

  keepPaths(): void {
    this.#keepsPaths = true;
  }

  close(): void {
    this.#isClosed = true;
    this.#descriptors.closeAll();
  }
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
    // Nothing is accepted before the next turn of the event loop.
    server.listen(ownListening({ fd }), () => {
      const address = addressOf(server.address());
      server.close();
      resolve(address);
    });
  });
}

function handedOut(
  { listenAgain, isInherited = false }: Opened,
  fds: readonly (number | undefined)[],
): HandedOut {
  const open = fds.filter((fd) => fd !== undefined);
  return { fds: open, isShared: listenAgain !== undefined, isInherited };
}

function fdOf(server: Server): number {
  const fd = serverFd(server);
  if (fd !== undefined) return fd;
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
