// Listening sockets as Node's handles: bound here and never listened on, so that this process accepts nothing.
// The first loop that listens on its copy makes all of them listen, and they do until the last is closed.

import { rmSync } from 'node:fs';
import { constants } from 'node:os';
import { CodedError } from '../../errors.js';
import type { BoundAddress, ListenQuery } from '../protocol.js';
import { removeLeftPath } from '../shared/left-path.js';
import type { SocketHandle } from '../shared/socket-handle.js';
import type { OpenSocket, SocketOpener } from '../supervisor/sockets.js';
import { createServerHandle } from './server-handle.js';

/** `UV_TCP_IPV6ONLY`. */
const v6Only = 1;
const anyAddress = ['::', '0.0.0.0'];

export class PortableSocketOpener implements SocketOpener {
  /** Addresses of its open TCP sockets. */
  readonly #addresses = new Set<Exclude<BoundAddress, string>>();

  async inherit(): Promise<void> {} // `listenFds` is refused before

  async open(query: ListenQuery): Promise<OpenSocket> {
    const { address, port, addressType, isV6Only } = query;
    const isPath = port < 0;
    if (isPath) await removeLeftPath(address);
    else if (this.#isTaken(query)) throw systemError(-constants.errno.EADDRINUSE);
    const handle = createServerHandle(address, port, addressType, -1, isV6Only ? v6Only : 0);
    if (typeof handle === 'number') throw systemError(handle);
    const bound = isPath ? (address ?? '') : addressOf(handle);
    if (typeof bound !== 'string') this.#addresses.add(bound);
    return {
      address: bound,
      queues: 0,
      waitingConnections: 0,
      of: () => ({ handle }),
      close: () => {
        handle.close();
        if (typeof bound === 'string') rmSync(bound, { force: true });
        else this.#addresses.delete(bound);
      },
    };
  }

  /** The system finds an address free as long as no loop listens on it. */
  #isTaken({ address, port }: ListenQuery): boolean {
    const host = address ?? '::';
    return [...this.#addresses].some(
      (own) =>
        own.port === port &&
        (own.address === host || [own.address, host].some((each) => anyAddress.includes(each))),
    );
  }

  close(): void {}
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
