// Node's networks, read when they are needed. An import in an ES module reads all members of `node:http`, and one of
// them loads an HTTP client (undici), which this library does not need.

import type * as Http from 'node:http';
import type * as Https from 'node:https';
import type * as Net from 'node:net';
import { clearTimeout, setTimeout } from './timers.js';

export function nodeNet(): typeof Net {
  return process.getBuiltinModule('node:net');
}

export function nodeHttp(): typeof Http {
  return process.getBuiltinModule('node:http');
}

export function nodeHttps(): typeof Https {
  return process.getBuiltinModule('node:https');
}

/** Marks options of `ownListening`; both copies of this module have the same symbol. */
const isOwn = Symbol.for('manycore.ownListening');

/** Options of `listen()` for a server of manycore itself, which is no server of the program in a served process. */
export function ownListening<Options extends object>(options: Options) {
  return { ...options, exclusive: true, [isOwn]: true };
}

/** True: the options are those of a program. */
export function isProgramListening(options: object): boolean {
  return !(isOwn in options);
}

/** The descriptor of a server that listens; `undefined` where the runtime has none. */
export function serverFd(server: Net.Server): number | undefined {
  const handle: unknown = Reflect.get(server, '_handle');
  const fd: unknown = Reflect.get(Object(handle), 'fd');
  return typeof fd === 'number' && fd >= 0 ? fd : undefined;
}

/** Time for a client to send its request, in ms. */
const quietMs = 1000;
const maxCloseMs = 5000;

/**
 * Stops listening. A connection is closed with its next answer, or after a second without a request, as in a drain:
 * `close()` would reset clients whose request is on its way.
 */
export async function closeGently(server: Http.Server): Promise<void> {
  server.prependListener('request', (_request, response) => {
    response.shouldKeepAlive = false;
  });
  const timers = [
    setTimeout(() => server.closeIdleConnections(), quietMs),
    setTimeout(() => server.closeAllConnections(), maxCloseMs),
  ];
  await new Promise<void>((resolve) => {
    // The method of net: that of http closes idle connections.
    nodeNet().Server.prototype.close.call(server, () => resolve());
  });
  for (const timer of timers) clearTimeout(timer);
}

export function isWebServer(server: unknown): server is Http.Server | Https.Server {
  return server instanceof nodeHttp().Server || server instanceof nodeHttps().Server;
}
