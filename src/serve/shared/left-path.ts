// Paths of Unix sockets that a killed server has left.

import { existsSync, rmSync, statSync } from 'node:fs';
import { connect } from 'node:net';

/** Removes the path of a Unix socket on which nothing listens. */
export async function removeLeftPath(path: string | null): Promise<void> {
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
