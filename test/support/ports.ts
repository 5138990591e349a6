// Ports for servers that a test starts, and starts again on the same port.

import { once } from 'node:events';
import { createServer } from 'node:net';

/** Ports below those that the system gives to connections and to `listen(0)`. */
const lowest = 10_000;
const count = 22_000;

/**
 * Returns a port that nothing has. A port of `listen(0)` would not do: between the end of that server and the
 * start of the test's one, the system may give it to a connection or a server of another test.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = lowest + Math.floor(Math.random() * count);
    if (await isFree(port)) return port;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    server.close();
    await once(server, 'close');
    return true;
  } catch (error) {
    const { code } = Object(error);
    if (code === 'EADDRINUSE' || code === 'EACCES') return false;
    throw error;
  }
}
