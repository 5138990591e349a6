// A served connection carries the same bytes as one of plain Node.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { fileURLToPath } from 'node:url';
import type { ServedApp } from '../../src/serve/index.js';
import { isRunning, waitFor } from '../support/index.js';
import { portOf } from './client.js';
import { open } from './served.js';

const host = '127.0.0.1';

/** A program of apps/. */
function openApp(t: TestContext, name: string, processes = 1): Promise<ServedApp> {
  const app = fileURLToPath(new URL(`./apps/${name}.js`, import.meta.url));
  return open(t, app, { processes });
}

/** Returns the answer to these bytes, until the server ends the connection. */
async function exchange(port: number, bytes: string): Promise<string> {
  const socket = connect(port, host);
  socket.end(bytes);
  return await text(socket);
}

test('requests that come at once are answered in their order', async (t) => {
  const port = portOf(await openApp(t, 'protocols'));
  const get = (path: string, more = '') => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${more}\r\n`;
  const answers = await exchange(
    port,
    get('/one') + get('/two') + get('/three', 'Connection: close\r\n'),
  );
  assert.deepEqual(answers.match(/\/(one|two|three)/g), ['/one', '/two', '/three']);
});

test('a large upload arrives whole, and trailers come back', async (t) => {
  const port = portOf(await openApp(t, 'protocols'));
  const sizeBytes = 8 * 1024 * 1024;
  const sent = request({ port, host, method: 'POST', path: '/upload', agent: false });
  sent.end(Buffer.alloc(sizeBytes, 7));
  const [response] = await once(sent, 'response');
  assert.equal(await text(response), String(sizeBytes));
  assert.deepEqual(response.trailers, { 'x-checked': 'yes' });
});

test('events arrive when they are sent', async (t) => {
  const port = portOf(await openApp(t, 'protocols'));
  const sent = request({ port, host, method: 'POST', path: '/events', agent: false });
  sent.flushHeaders();
  const [response] = await once(sent, 'response');
  const [first] = await once(response.setEncoding('utf8'), 'data');
  assert.equal(first, 'data: first\n\n');
  sent.end(); // only then comes the last
  assert.equal(await text(response), 'data: last\n\n');
});

test('a connection can be upgraded, and then belongs to the program', async (t) => {
  const port = portOf(await openApp(t, 'protocols'));
  const headers = { connection: 'Upgrade', upgrade: 'echo' };
  const sent = request({ port, host, headers, agent: false });
  sent.end();
  const [, socket] = await once(sent, 'upgrade');
  socket.end('there and back');
  assert.equal(await text(socket), 'there and back');
});

for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
  test(`a session of ${version} resumes at every loop of every process`, async (t) => {
    const port = portOf(await openApp(t, 'secure', 2));
    const ask = async (session: Buffer | undefined) => {
      const socket = connectTls({
        ...{ port, host, session, servername: 'localhost' },
        rejectUnauthorized: false,
        minVersion: version,
        maxVersion: version,
      });
      t.after(() => socket.destroy());
      let kept: Buffer | undefined;
      socket.on('session', (ticket: Buffer) => {
        kept = ticket;
      });
      await once(socket, 'secureConnect');
      const isResumed = socket.isSessionReused();
      socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
      const [answer] = await once(socket.setEncoding('utf8'), 'data');
      return { kept, isResumed, loop: /\d+:\d+$/.exec(answer)?.[0] };
    };
    const first = await ask(undefined);
    assert.equal(first.isResumed, false);
    assert.ok(first.kept !== undefined);
    // Connections stay open, so that the next one goes to a loop with fewer.
    const loops = new Set<string | undefined>();
    await waitFor(async () => {
      const { isResumed, loop } = await ask(first.kept);
      assert.ok(isResumed);
      return loops.add(loop).size === 4;
    });
  });
}

/** An HTTP/2 client that waits for an answer. */
async function askSlowly(t: TestContext, path: string) {
  const server = await openApp(t, 'secure');
  const address = server.addresses[1];
  const port = typeof address === 'object' ? address.port : 0;
  const client = connectHttp2(`https://${host}:${port}`, { rejectUnauthorized: false });
  t.after(() => client.destroy());
  const stream = client.request({ ':path': path });
  let isAnswered = false;
  stream.once('data', () => {
    isAnswered = true;
  });
  const slow = text(stream);
  await once(client, 'connect');
  return { server, client, slow, isAnswered: () => isAnswered };
}

test('a reload lets an HTTP/2 client finish its streams and tells it to go', async (t) => {
  const { server, client, slow, isAnswered } = await askSlowly(t, '/drained');
  await text(client.request({ ':path': '/' }));
  const total = (name: 'requests' | 'requestsInFlight') =>
    server.status().reduce((sum, line) => sum + line[name], 0);
  await waitFor(() => total('requests') === 1 && total('requestsInFlight') === 1);
  const gone = once(client, 'goaway').then(isAnswered);
  const reloaded = server.reload();
  assert.ok(await gone, 'streams on their way would have been refused');
  assert.match(await slow, /^\d+:\d+$/);
  await reloaded;
});

test('an HTTP/2 session without pauses gets GOAWAY before the deadline', async (t) => {
  const { server, client, slow } = await askSlowly(t, '/slow');
  const gone = once(client, 'goaway');
  const [pid] = server.pids;
  await server.reload();
  const asking = setInterval(() => {
    if (!client.closed)
      client
        .request({ ':path': '/slow' })
        .on('error', () => {})
        .resume();
  }, 50);
  await gone;
  clearInterval(asking);
  assert.match(await slow, /^\d+:\d+$/);
  await waitFor(() => !isRunning(pid ?? 0));
});
