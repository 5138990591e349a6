// Listening sockets as Node's handles: bound here and never listened on, so that this process accepts nothing.
// The first loop that listens on its copy makes all of them listen, and they do until the last is closed.

import { renameSync, statSync } from 'node:fs';
import { CodedError } from '../../errors.js';
import type { BoundAddress, ListenQuery } from '../protocol.js';
import { errnoOf } from '../shared/errno.js';
import { removeLeftPath } from '../shared/left-path.js';
import type { SocketHandle } from '../shared/socket-handle.js';
import type { OpenSocket, SocketOpener } from '../supervisor/sockets.js';
import { createServerHandle } from './server-handle.js';

/** `UV_TCP_IPV6ONLY`. */
const v6Only = 1;
const anyAddress: readonly string[] = ['::', '0.0.0.0'];

export class PortableSocketOpener implements SocketOpener {
  readonly #bound = new Set<BoundTcp>();

  async inherit(): Promise<void> {} // `listenFds` is refused before

  async open(query: ListenQuery): Promise<OpenSocket> {
    const { address, port, addressType, isV6Only } = query;
    const isPath = port < 0;
    if (isPath) await removeLeftPath(address);
    else if (this.#isTaken(query)) throw systemError(errnoOf('EADDRINUSE'));
    const handle = createServerHandle(address, port, addressType, -1, isV6Only ? v6Only : 0);
    if (typeof handle === 'number') throw systemError(handle);
    return isPath ? openPath(handle, address ?? '') : this.#openTcp(handle, isV6Only);
  }

  #openTcp(handle: SocketHandle, isV6Only: boolean): OpenSocket {
    const address = addressOf(handle);
    const bound = { ...address, isV6Only };
    this.#bound.add(bound);
    return openSocket(address, handle, () => {
      handle.close();
      this.#bound.delete(bound);
    });
  }

  /** True: another socket of this opener has the address, which is free for the system until a loop listens. */
  #isTaken({ address, port, addressType, isV6Only }: ListenQuery): boolean {
    const wanted = { address: address ?? '::', port, isV6Only };
    const family = addressType === 4 ? 'IPv4' : 'IPv6';
    return [...this.#bound].some((own) => overlap(own, { ...wanted, family }));
  }

  close(): void {}
}

type BoundTcp = Exclude<BoundAddress, string> & { readonly isV6Only: boolean };

function overlap(a: BoundTcp, b: BoundTcp): boolean {
  if (a.port !== b.port) return false;
  if (a.family === b.family) {
    return a.address === b.address || [a, b].some(({ address }) => anyAddress.includes(address));
  }
  return [a, b].some(({ address, isV6Only }) => address === '::' && !isV6Only);
}

function openPath(handle: SocketHandle, path: string): OpenSocket {
  const { ino } = statSync(path);
  return openSocket(path, handle, () => {
    const found = statSync(path, { throwIfNoEntry: false });
    const isOfAnother = found !== undefined && found.ino !== ino;
    const aside = `${path}.${process.pid}`;
    if (isOfAnother) renameSync(path, aside); // libuv removes the path, whoever has it now
    handle.close();
    if (isOfAnother) renameSync(aside, path);
  });
}

function openSocket(address: BoundAddress, handle: SocketHandle, close: () => void): OpenSocket {
  return { address, queues: 0, waitingConnections: 0, of: () => ({ handle }), close };
}

/** Throws the error of the bind, which libuv reports late: the address is in use. */
function addressOf(handle: SocketHandle): Exclude<BoundAddress, string> {
  const out: { address?: string; port?: number; family?: string } = {};
  const errno = handle.getsockname?.(out) ?? 0;
  if (errno !== 0) {
    handle.close();
    throw systemError(errno);
  }
  const { address = '', port = 0, family } = out;
  return { address, port, family: family === 'IPv6' ? 'IPv6' : 'IPv4' };
}

function systemError(errno: number): Error {
  return Object.assign(new CodedError('SERVE_START_FAILED', 'the socket cannot be bound'), {
    errno,
    syscall: 'bind',
  });
}
