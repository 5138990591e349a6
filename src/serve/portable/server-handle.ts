// Node's function for handles of listening sockets. It is not documented; `node:cluster` uses it in this way on
// every line from 20 to 26 (lib/net.js). The tests of servers run on each line.

import net from 'node:net';
import type { SocketHandle } from '../shared/socket-handle.js';

/**
 * Makes a handle that is bound and does not listen: of an address and port, of a path (port and type -1), or, with
 * `fd`, of an open descriptor. Returns the system's error as libuv's negative number.
 */
export function createServerHandle(
  address: string | null,
  port: number,
  addressType: number,
  fd: number,
  flags = 0,
): SocketHandle | number {
  const create: unknown = Reflect.get(net, '_createServerHandle');
  if (typeof create !== 'function') throw new Error('this runtime passes on no listening sockets');
  return Reflect.apply(create, net, [address, port, addressType, fd, flags]);
}
