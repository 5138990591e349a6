// Requests to a served program.

import { Agent, get, request } from 'node:http';
import { connect } from 'node:http2';
import { get as getSecurely } from 'node:https';
import { text } from 'node:stream/consumers';
import type { ServedApp } from '../../src/serve/index.js';

export interface Answer {
  readonly status: number;
  readonly body: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** The port of the server's first socket. */
export function portOf(server: ServedApp): number {
  const [address] = server.addresses;
  if (typeof address !== 'object') throw new Error('the server listens on no port');
  return address.port;
}

/** The body of an answer over a Unix socket. */
export function bodyOver(socketPath: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = get({ socketPath, agent: false }, (response) => {
      text(response).then(resolve, reject);
    });
    request.on('error', reject);
  });
}

/** One request; over a connection of its own without `agent`. */
export function ask(
  port: number,
  path = '/',
  agent?: Agent,
  method = 'GET',
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const ownAgent = agent ?? new Agent({ keepAlive: false });
  return new Promise((resolve, reject) => {
    const options = { port, path, method, headers, host: '127.0.0.1', agent: ownAgent };
    const asked = request(options, (response) => {
      const pieces: Buffer[] = [];
      response.on('data', (piece: Buffer) => pieces.push(piece));
      response.on('error', reject);
      response.on('end', () => {
        const { statusCode = 0, headers } = response;
        resolve({ status: statusCode, headers, body: Buffer.concat(pieces).toString() });
      });
    });
    asked.on('error', reject);
    asked.end();
  });
}

export interface Begun {
  readonly body: Promise<string>;
  /** The client goes away: there is no body. */
  readonly leave: () => void;
}

/** A request whose answer has begun, and goes on. */
export function begin(port: number, path: string): Promise<Begun> {
  return new Promise((resolve, reject) => {
    const options = { port, path, host: '127.0.0.1', agent: false };
    const request = get(options, (response) => {
      const pieces: Buffer[] = [];
      const body = new Promise<string>((resolveBody, rejectBody) => {
        response.on('error', rejectBody);
        response.on('end', () => resolveBody(Buffer.concat(pieces).toString()));
      });
      response.on('data', (piece: Buffer) => {
        pieces.push(piece);
        resolve({
          body,
          leave: () => {
            body.catch(() => {});
            request.destroy();
          },
        });
      });
    });
    request.on('error', reject);
  });
}

export async function bodyOf(port: number, path?: string): Promise<string> {
  return (await ask(port, path)).body;
}

/** Keeps `clients` connections busy until `stop` is called, which resolves with what came of it. */
export function keepBusy(
  port: number,
  clients: number,
  isKeptAlive: boolean,
  path = '/',
  headers: Readonly<Record<string, string>> = {},
) {
  let isOver = false;
  const failures: unknown[] = [];
  let answers = 0;
  const run = async (): Promise<void> => {
    const agent = new Agent({ keepAlive: isKeptAlive, maxSockets: 1 });
    while (!isOver) {
      try {
        const { status } = await ask(port, path, agent, 'GET', headers);
        if (status === 200) answers += 1;
        else failures.push(status);
      } catch (error) {
        failures.push(error);
        if (Object(error).code === 'ECONNREFUSED') break; // the server is closed: the test has failed
      }
    }
    agent.destroy();
  };
  const done = Promise.all(Array.from({ length: clients }, run));
  return {
    answers: () => answers,
    stop: async () => {
      isOver = true;
      await done;
      return { answers, failures };
    },
  };
}

/** A request over TLS, to a server with a self-signed certificate. */
export async function secureBody(port: number, version: 'http/1.1' | 'h2'): Promise<string> {
  if (version === 'http/1.1') {
    const options = { port, rejectUnauthorized: false, agent: false };
    return await new Promise((resolve, reject) => {
      getSecurely(options, (response) => void text(response).then(resolve, reject)).on(
        'error',
        reject,
      );
    });
  }
  const session = connect(`https://localhost:${port}`, { rejectUnauthorized: false });
  try {
    const stream = session.request({ ':path': '/' });
    stream.end();
    return await text(stream);
  } finally {
    session.close();
  }
}
