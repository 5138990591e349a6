// The listening sockets of a server that goes over to another process, which serves in its place. Each has a key that
// both compute from what a program or an option asks for. Not here: how descriptors get there (the command).

import { closeSync, fstatSync, rmSync } from 'node:fs';
import type { BoundAddress } from '../protocol.js';

/** A socket on its way; `fd` belongs to whoever has the list. */
export interface HandedSocket {
  /** See `listenKey` and `endpointKey`. */
  readonly key: string;
  readonly fd: number;
  readonly address: BoundAddress;
  /** True: it may share its port with further sockets, those with the same key. */
  readonly isShared: boolean;
  /** True: the first of these processes has inherited it (systemd). */
  readonly isInherited: boolean;
  /** Ticket keys of TLS servers, in hex. */
  readonly ticketKeys?: string | undefined;
}

/** A port that the system has chosen for a program that listens on port 0. */
export interface ChosenPort {
  /** Name of the server. */
  readonly name: string;
  /** Key of its query. */
  readonly query: string;
  readonly port: number;
}

export interface Handover {
  readonly sockets: readonly HandedSocket[];
  readonly ports: readonly ChosenPort[];
}

/** Key of a socket that a program listens on; `port` is the one that it has got. */
export function listenKey(
  { address, addressType }: { readonly address: string | null; readonly addressType: number },
  port: number,
): string {
  return `listen ${address}:${port}:${addressType}`;
}

/** Key of the socket over which clients come that wait in the supervisor's thread for an app (`serverNames`). */
export function waitingKey(
  query: { readonly address: string | null; readonly addressType: number },
  port: number,
): string {
  return `waiting ${listenKey(query, port)}`;
}

/** Key of the status page, the probes or the metrics of a server; its name is needed only where any port will do. */
export function endpointKey(
  what: 'status' | 'health' | 'metrics',
  name: string,
  { host, port }: { readonly host?: string | undefined; readonly port?: number | undefined },
): string {
  return `${what} ${port === 0 ? name : ''} ${host}:${port}`;
}

/** A socket that is found by its key alone. */
export function endpointSocket(key: string, fd: number): HandedSocket {
  const address = { address: '', port: 0, family: 'IPv4' } as const;
  return { key, fd, address, isShared: false, isInherited: false };
}

/** Leaves out further descriptors of the same socket. */
export function withoutTwins(sockets: readonly HandedSocket[]): HandedSocket[] {
  const byInode = new Map<number, HandedSocket>();
  for (const socket of sockets) {
    const { ino } = fstatSync(socket.fd);
    if (!byInode.has(ino)) byInode.set(ino, socket);
  }
  return [...byInode.values()];
}

/** The server that this process replaces. Owns the sockets that nothing here has taken. */
export class Predecessor {
  /** Pid under which this server is known: that of the first of these processes. */
  readonly pid: number;
  #hasLeft = false;
  readonly #onLeave: (() => void)[] = [];
  readonly #ports: readonly ChosenPort[];
  readonly #left: HandedSocket[];
  /** Sockets that the first process has inherited; they stay here. */
  readonly inheritedFds: readonly number[];

  constructor(pid: number, { sockets, ports }: Handover) {
    this.pid = pid;
    this.#ports = ports;
    this.#left = sockets.filter(({ isInherited }) => !isInherited);
    this.inheritedFds = sockets.filter(({ isInherited }) => isInherited).map(({ fd }) => fd);
  }

  /** False: it serves on if this one does not start, so nothing of it is removed. */
  get hasLeft(): boolean {
    return this.#hasLeft;
  }

  /** This process serves in its place. */
  leave(): void {
    this.#hasLeft = true;
    for (const callback of this.#onLeave.splice(0)) callback();
  }

  /** Calls `callback` once this process serves in its place. */
  onceLeft(callback: () => void): void {
    if (this.#hasLeft) callback();
    else this.#onLeave.push(callback);
  }

  has(key: string): boolean {
    return this.#left.some((socket) => socket.key === key);
  }

  /** Returns the sockets with this key, for the caller to close. */
  take(key: string): HandedSocket[] {
    const taken = this.#left.filter((socket) => socket.key === key);
    for (const socket of taken) this.#left.splice(this.#left.indexOf(socket), 1);
    return taken;
  }

  /** Ports that the server `name` has got for port 0, by the keys of its queries. */
  portsOf(name: string): Map<string, number> {
    const own = this.#ports.filter((chosen) => chosen.name === name);
    return new Map(own.map(({ query, port }) => [query, port]));
  }

  /** Closes what nothing has taken: clients are refused there from now on. */
  close(): void {
    for (const { fd, address } of this.#left.splice(0)) {
      closeSync(fd);
      if (typeof address === 'string' && this.#hasLeft) rmSync(address, { force: true });
    }
  }
}
