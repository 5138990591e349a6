// Sends part of a file over a connection without reading it into this process: sendfile(2), with a wait
// for room whenever the client is slower than the disk.

import type { ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { callNative, nativeBinding } from '../../native.js';
import { addBytesSentNatively } from '../bytes-sent-natively.js';

/** Maximum per turn of the event loop, in bytes, so that other connections get their share. */
const turnBytes = 2 ** 21;

/** Returns the descriptor of a connection over which the kernel can send by itself; `undefined`: none. */
export function plainDescriptor(response: ServerResponse): number | undefined {
  const { socket } = response;
  // HTTP/2 and TLS wrap the bytes in this process (and the socket of HTTP/2 is a proxy). An own property
  // `write` is a middleware's that reads the body (compression). Without a socket an earlier response is
  // not finished yet.
  const isPlain = !('stream' in response) && socket instanceof Socket && !('encrypted' in socket);
  if (!isPlain || Object.hasOwn(response, 'write') || nativeBinding() === undefined) return;
  const fd: unknown = Reflect.get(handleOf(socket) ?? {}, 'fd');
  return typeof fd === 'number' && fd >= 0 ? fd : undefined;
}

function handleOf(socket: Socket): object | null {
  const handle: unknown = Reflect.get(socket, '_handle');
  return typeof handle === 'object' ? handle : null;
}

/**
 * Sends `count` bytes of the file behind `fileFd` from `offset` on, after what the response has sent
 * before. Resolves when the kernel has them; rejects when the connection is lost or the file has become
 * shorter.
 */
export async function sendFile(
  response: ServerResponse,
  socketFd: number,
  fileFd: number,
  offset: number,
  count: number,
): Promise<void> {
  const { socket } = response;
  const native = nativeBinding();
  if (socket === null || native === undefined) throw new Error('the connection is lost');
  response.flushHeaders();
  await new Promise<void>((resolve, reject) => {
    socket.write('', (error) => (error ? reject(error) : resolve()));
  });
  const handle = handleOf(socket);
  let wake: () => void = () => {};
  const onRoom = (): void => wake();
  const sender = callNative(() => new native.NativeFileSender(socketFd, fileFd, onRoom));
  socket.once('close', onRoom);
  try {
    let sent = 0;
    while (sent < count) {
      if (socket.destroyed) throw new Error('the connection is lost');
      const now = callNative(() => sender.send(offset + sent, Math.min(count - sent, turnBytes)));
      if (now === 0) throw new Error('the file has become shorter');
      sent += Math.max(0, now);
      if (handle !== null) addBytesSentNatively(handle, Math.max(0, now));
      if (sent === count) break;
      if (socket.timeout !== undefined && socket.timeout > 0) socket.setTimeout(socket.timeout);
      await new Promise<void>((resolve) => {
        wake = resolve;
        if (now < 0) sender.wait();
        else setImmediate(resolve);
      });
    }
  } finally {
    socket.removeListener('close', onRoom);
    sender.close();
  }
}
