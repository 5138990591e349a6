// Listening sockets as Node's handles: bound here and never listened on, so that this process accepts nothing.
// The first loop that listens on its copy makes all of them listen, and they do until the last is closed.

import { rmSync } from 'node:fs';
import { CodedError } from '../../errors.js';
import type { BoundAddress, ListenQuery } from '../protocol.js';
import { removeLeftPath } from '../shared/left-path.js';
import type { SocketHandle } from '../shared/socket-handle.js';
import type { OpenSocket, SocketOpener } from '../supervisor/sockets.js';
import { createServerHandle } from './inbox.js';

/** `UV_TCP_IPV6ONLY`. */
const v6Only = 1;

export class PortableSocketOpener implements SocketOpener {
  async inherit(): Promise<void> {} // `listenFds` is refused before

  async open(query: ListenQuery): Promise<OpenSocket> {
    const { address, port, addressType, isV6Only } = query;
    const isPath = port < 0;
    if (isPath) await removeLeftPath(address);
    const handle = createServerHandle(address, port, addressType, -1, isV6Only ? v6Only : 0);
    if (typeof handle === 'number') throw systemError(handle);
    const bound = isPath ? (address ?? '') : addressOf(handle);
    return {
      address: bound,
      queues: 0,
      waitingConnections: 0,
      of: () => ({ handle }),
      close: () => {
        handle.close();
        if (isPath) rmSync(address ?? '', { force: true });
      },
    };
  }

  close(): void {}
}

/** Throws the error of the bind, which libuv reports late: the address is in use. */
function addressOf(handle: SocketHandle): BoundAddress {
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
