// Channels between the members of a mesh without the native core: over Unix sockets in the private folder of the
// user. The member that offers a channel listens at a path of its own, for one connection; the other connects.

import { rmSync } from 'node:fs';
import { createServer, connect as netConnect, type Server } from 'node:net';
import { basename } from 'node:path';
import { threadId } from 'node:worker_threads';
import { ownServers } from '../../agent/index.js';
import { type ChannelEnd, overStream } from '../../channels/index.js';
import { CodedError } from '../../errors.js';
import { messageOf, ownListening, socketPath } from '../../lib/index.js';

export interface Offer {
  readonly path: string;
  /** Resolves when the other has connected; `undefined`: the offer was withdrawn. */
  readonly end: Promise<ChannelEnd | undefined>;
  withdraw(): void;
}

const offerNames = /^mesh-\d+-\d+-\d+\.sock$/;
let lastOffer = 0;

/** Offers a channel. Rejects with `RUNTIME_FOLDER_REFUSED`, `CHANNEL_UNAVAILABLE`. */
export async function offerOverSocket(): Promise<Offer> {
  lastOffer += 1;
  const path = socketPath(`mesh-${process.pid}-${threadId}-${lastOffer}.sock`);
  rmSync(path, { force: true }); // of a process that was killed, and had the same number
  const server = createServer();
  ownServers.add(server);
  await listening(server, path);
  const end = new Promise<ChannelEnd | undefined>((resolve) => {
    server.once('connection', (socket) => {
      server.close();
      resolve(overStream(socket));
    });
    server.once('close', () => resolve(undefined)); // without a connection
  });
  return { path, end, withdraw: () => server.close() };
}

function listening(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause) => {
      const message = `no socket for another loop: ${messageOf(cause)}`;
      reject(new CodedError('CHANNEL_UNAVAILABLE', message, { cause }));
    });
    server.listen(ownListening({ path }), () => {
      server.unref();
      server.on('error', () => server.close()); // it cannot accept: the offer is withdrawn
      resolve();
    });
  });
}

/**
 * Accepts an offer. An error of the connection ends the channel. Throws `WORKER_PROTOCOL` for a path that is none of
 * an offer: a program in a loop may send any.
 */
export function acceptOverSocket(path: string): ChannelEnd {
  const name = basename(path);
  if (!offerNames.test(name) || socketPath(name) !== path) {
    throw new CodedError('WORKER_PROTOCOL', `${path} is no socket of a loop: restart the server`);
  }
  return overStream(netConnect(path));
}
