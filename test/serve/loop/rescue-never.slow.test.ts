// Connections that a blocked loop keeps, because another loop could not go on with them: it answers them afterwards.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { Agent as HttpAgent, request } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import { get as getSecurely, Agent as HttpsAgent } from 'node:https';
import { connect } from 'node:net';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { waitFor } from '../../support/index.js';
import { atOneLoop, type Client, keptClient, total } from '../kept-clients.js';
import { folder, open, skip } from '../served.js';

const waysIn = fileURLToPath(new URL('../apps/ways-in.js', import.meta.url));

/** Addresses for a client: the program's plain port, and its other one or its path. */
interface Target {
  /** Sockets to destroy before the server closes: a drain leaves some connections to the program. */
  readonly opened: { destroy(): unknown }[];
  readonly plain: number;
  readonly port: number;
  readonly path: string;
}

/** Returns the loop that answers, each time. */
type Ask = () => Promise<string>;

/** Over a socket: sends `first`, and `next` each time that it is called later. */
function rawClient({ opened }: Target, socket: Duplex, first: string, next: string): Ask {
  opened.push(socket);
  const state = { received: '', answers: 0 };
  socket.on('error', () => {});
  socket.on('data', (bytes: Buffer) => {
    state.received += bytes.toString('latin1');
  });
  return async () => {
    socket.write(state.answers === 0 ? first : next);
    state.answers += 1;
    const loops = () => state.received.match(/\b\d+:\d+(?=\r|HTTP|$)/g) ?? [];
    await waitFor(() => loops().length >= state.answers || socket.destroyed);
    return loops()[state.answers - 1] ?? 'closed';
  };
}

const get = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';

/** A client whose loop has read a first request, and `begun` of the next one, when it answers the first. */
function begunClient(begun: string, rest: string) {
  return (to: Target): Ask => rawClient(to, connect(to.plain, '127.0.0.1'), get + begun, rest);
}

function overHttp({ opened }: Target, at: { port: number } | { socketPath: string }): Ask {
  const agent = new HttpAgent({ keepAlive: true, maxSockets: 1 });
  opened.push(agent);
  return async () => {
    const sent = request({ ...at, host: '127.0.0.1', agent }).end();
    const [response] = await once(sent, 'response');
    return await text(response);
  };
}

function overHttp2({ opened }: Target, authority: string): Ask {
  const session = connectHttp2(authority, { rejectUnauthorized: false });
  opened.push(session);
  return () => text(session.request({ ':path': '/' }).end());
}

function overTls({ opened, port }: Target): Ask {
  const agent = new HttpsAgent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false });
  opened.push(agent);
  return async () => {
    const [response] = await once(getSecurely({ port, agent }), 'response');
    return await text(response);
  };
}

async function upgraded(to: Target): Promise<Ask> {
  const headers = { connection: 'upgrade', upgrade: 'loop' };
  const sent = request({ port: to.plain, host: '127.0.0.1', headers, agent: false }).end();
  const [, socket] = await once(sent, 'upgrade');
  return rawClient(to, socket, '.', '.');
}

type ConnectTo = (to: Target) => Ask | Promise<Ask>;

const kinds: [name: string, kind: string, connectTo: ConnectTo][] = [
  ['a TLS connection', 'tls', overTls],
  ['an HTTP/2 session', 'h2', (to) => overHttp2(to, `https://localhost:${to.port}`)],
  ['an HTTP/2 session without TLS', 'h2c', (to) => overHttp2(to, `http://localhost:${to.port}`)],
  ['a connection of a Unix socket', 'unix', (to) => overHttp(to, { socketPath: to.path })],
  [
    'a connection of node:net',
    'net',
    (to) => rawClient(to, connect(to.port, '127.0.0.1'), '.', '.'),
  ],
  [
    'a connection that the program gives to an HTTP server',
    'given',
    (to) => overHttp(to, { port: to.port }),
  ],
  ['an upgraded connection', '', upgraded],
  ['half a head', '', begunClient('GET / HTTP/1.1\r\nHo', 'st: a\r\n\r\n')],
  ['the first byte of a head', '', begunClient('G', get.slice(1))],
  [
    'half a body',
    '',
    begunClient('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n1234', '56789'),
  ],
  [
    'an answer that is not sent to its end',
    '',
    (to) => rawClient(to, connect(to.plain, '127.0.0.1'), get.replace('/', '/open'), get),
  ],
];

for (const [name, kind, connectTo] of kinds) {
  test(`${name} stays at a blocked loop, which answers it afterwards`, { skip }, async (t) => {
    const opened: Target['opened'] = [];
    t.after(() => opened.map((each) => each.destroy()));
    const at = folder(t);
    const path = join(at, 'socket');
    const server = await open(t, waysIn, { args: [kind, path] });
    const ports = server.addresses.flatMap((each) => (typeof each === 'object' ? each.port : []));
    const [plain = 0, port = 0] = ports;
    const { heavy, others, home } = await atOneLoop(t, plain, 1, async () => {
      const stays = await connectTo({ opened, plain, port, path });
      return { home: await stays(), other: stays };
    });
    const free: Client = await waitFor(async () => {
      const client = keptClient(t, plain);
      return (await client()) === home && client;
    });

    const end = join(at, 'end');
    const blocked = heavy(`/?until=${end}`);
    await waitFor(() => existsSync(`${end}.begun`));
    const answer = others[0]?.();
    answer?.catch(() => {}); // it is awaited below
    assert.notEqual(await free(), home, 'connections leave the loop, which is still blocked');
    writeFileSync(end, '');

    assert.equal(await answer, home);
    assert.equal(await blocked, home);
    await waitFor(() => total(server, 'takenAway') === total(server, 'takenOver'));
  });
}
