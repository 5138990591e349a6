// Checks that a NATS server listens at an address. With a silent listener the client would keep its
// connection, and so the program, alive for ever. So the client is started only where a server has
// answered.

import { connect } from 'node:net';

const defaultPort = 4222;

/** First line that a NATS server sends. */
const infoLine = /^INFO /;

export interface ServerInfo {
  /** True: the server accepts only clients with a certificate. */
  readonly wantsCertificate: boolean;
}

/** Resolves when one server answers with the NATS protocol; rejects with the reason of the last one. */
export function probeServers(servers: readonly string[], timeoutMs: number): Promise<ServerInfo> {
  const probes = servers.map((server) => probeServer(server, timeoutMs));
  return Promise.any(probes).catch((error: unknown) => {
    throw error instanceof AggregateError ? error.errors.at(-1) : error;
  });
}

function probeServer(server: string, timeoutMs: number): Promise<ServerInfo> {
  const { hostname, port } = new URL(/^\w+:\/\//.test(server) ? server : `nats://${server}`);
  const host = hostname.replace(/^\[|\]$/g, ''); // of an IPv6 address
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port: Number(port) || defaultPort });
    const settle = (how: () => void): void => {
      clearTimeout(timer);
      socket.destroy();
      how();
    };
    const timer = setTimeout(() => {
      settle(() => reject(new Error(`nothing came within ${timeoutMs} ms`)));
    }, timeoutMs);
    socket.once('error', (error) => settle(() => reject(error)));
    socket.once('close', () => settle(() => reject(new Error('it has closed the connection'))));
    socket.once('data', (bytes) => {
      const text = bytes.toString('latin1');
      const wantsCertificate = /"tls_verify": *true/.test(text);
      if (infoLine.test(text)) settle(() => resolve({ wantsCertificate }));
      else settle(() => reject(new Error('the answer is not from a NATS server')));
    });
  });
}
