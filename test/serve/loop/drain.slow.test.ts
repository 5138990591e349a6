// A reload with idle connections, and with connections that do not end.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { connect as connectPlain, type Socket } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { isRunning, waitFor, withDeadline } from '../../support/index.js';
import { begin, bodyOf, portOf } from '../client.js';
import { folder, listens, open, program } from '../served.js';

const app = fileURLToPath(new URL('../apps/kept.js', import.meta.url));
const get = 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n';
const upgrade = 'GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n';

/** Ports of apps/kept.ts, in their order. */
const kinds = ['HTTP', 'HTTPS', 'HTTP/1 of an HTTP/2 server'];

for (const [at, kind] of kinds.entries()) {
  test(`${kind}: connections that are idle are closed, others are not`, async (t) => {
    const server = await open(t, app, { loops: 1, drainTimeoutMs: 20_000 });
    const address = server.addresses[at];
    const port = typeof address === 'object' ? address.port : 0;
    const dial = () => connect(t, port, kind !== 'HTTP');
    const [unasked, answered, upgraded, sending] = await Promise.all([
      dial(),
      dial(),
      dial(),
      dial(),
    ]);
    for (const client of [answered, upgraded]) assert.match(await exchange(client, get), /answer$/);
    assert.match(await exchange(upgraded, upgrade), /Upgrade: echo/);
    assert.match(await exchange(sending, get), /answer$/);
    sending.write(get.slice(0, 10));
    const closed = Promise.all([once(unasked, 'close'), once(answered, 'close')]);
    await server.reload();
    await withDeadline(closed, 30_000, 'idle connections are closed');
    assert.match(await exchange(sending, get.slice(10)), /Connection: close[^]*answer$/);
    assert.equal(await exchange(upgraded, 'still here'), 'still here');
    upgraded.destroy();
  });
}

test('requests that are open at the deadline are cut off', async (t) => {
  const server = await open(t, listens, { loops: 1, drainTimeoutMs: 500 });
  const [left = 0] = server.pids;
  const endless = await begin(portOf(server), '/?wait=3600000');
  await server.reload();
  await assert.rejects(withDeadline(endless.body, 30_000, 'it is cut off'), { code: 'ECONNRESET' });
  await waitFor(() => !isRunning(left));
  assert.match(await bodyOf(portOf(server)), /:0$/);
});

test('a server that the program has closed, before or in the drain, emits `close` once', async (t) => {
  const text = `import { createServer } from 'node:http';
    import { appendFileSync } from 'node:fs';
    import { createServer as plain } from 'node:net';
    const [, , file] = process.argv;
    const closes = { before: 0, in: 0, after: 0 };
    const note = (server, name) => server.on('close', () => (closes[name] += 1));
    const before = note(plain(), 'before').listen(0, '127.0.0.1', () => before.close());
    const own = note(createServer(), 'in').listen(0, '127.0.0.1');
    note(createServer(), 'after').listen(0, '127.0.0.1');
    process.on('SIGTERM', () => own.close());
    process.on('exit', () => appendFileSync(file, JSON.stringify(closes)));`;
  const file = join(folder(t), 'closes');
  const app = program(t, 'app.mjs', text);
  const server = await open(t, app, { loops: 1, args: [file] });
  await server.close();
  assert.deepEqual(JSON.parse(readFileSync(file, 'utf8')), { before: 1, in: 1, after: 1 });
});

test('a request that came while the loop was blocked is answered, not cut off', async (t) => {
  const place = folder(t);
  const [draining, go] = [join(place, 'draining'), join(place, 'go')];
  const text = `import { subscribe } from 'node:diagnostics_channel';
    import { existsSync, writeFileSync } from 'node:fs';
    import { createServer } from 'node:http';
    subscribe('manycore:server:drain', () => {
      if (existsSync(${JSON.stringify(draining)}) || !existsSync(${JSON.stringify(place)})) return;
      writeFileSync(${JSON.stringify(draining)}, '');
      const endMs = performance.now() + 1500; // longer than an idle connection has
      while (performance.now() < endMs || !existsSync(${JSON.stringify(go)}));
    });
    createServer((request, response) => response.end('answer')).listen(0, '127.0.0.1');`;
  const server = await open(t, program(t, 'app.mjs', text), { loops: 1, drainTimeoutMs: 20_000 });
  const unasked = await connect(t, portOf(server), false);
  const reloaded = server.reload();
  await waitFor(() => existsSync(draining));
  const answer = exchange(unasked, get);
  writeFileSync(go, '');
  assert.match(await answer, /Connection: close[^]*answer$/);
  await reloaded;
});

/** Serves the pid over connections that stay open for a minute. */
const patient = `import { createServer } from 'node:http';
  const server = createServer((request, response) => response.end('pid ' + process.pid));
  server.keepAliveTimeout = 60_000;
  server.listen(0, '127.0.0.1');`;

test('a connection has the time that its client was promised, where others serve', async (t) => {
  const options = { loops: 1, processes: 1, drainTimeoutMs: 200_000 };
  const server = await open(t, program(t, 'app.mjs', patient), options);
  const [old] = server.pids;
  const dial = () => connect(t, portOf(server), false);
  const [unasked, kept, unused] = await Promise.all([dial(), dial(), dial()]);
  for (const client of [kept, unused]) assert.match(await exchange(client, get), /keep-alive/);
  const passed = once(unasked, 'close');
  await server.reload();
  await withDeadline(passed, 30_000, 'a connection without a request is closed'); // the moment is over
  const answer = await exchange(kept, get);
  assert.match(answer, /Connection: close/);
  assert.match(answer, new RegExp(`pid ${old}$`));
  assert.ok(isRunning(old ?? 0));
  const closed = once(unused, 'close');
  await withDeadline(Promise.all([server.close(), closed]), 30_000, 'nothing serves in its place');
});

async function connect(t: TestContext, port: number, isSecure: boolean): Promise<Socket> {
  const options = { port, host: '127.0.0.1', rejectUnauthorized: false };
  const socket = isSecure ? connectTls(options) : connectPlain(options);
  t.after(() => socket.destroy());
  await once(socket, isSecure ? 'secureConnect' : 'connect');
  return socket.setEncoding('utf8');
}

/** Sends this and resolves with what comes back next. */
async function exchange(socket: Socket, sent: string): Promise<string> {
  return await new Promise((resolve, reject) => {
    socket.once('data', resolve);
    socket.once('close', () => reject(new Error('the connection was closed')));
    socket.write(sent);
  });
}

test('requests that are sent ahead in a drain are all answered', async (t) => {
  const text = `import { createServer } from 'node:http';
    let first;
    createServer((request, response) => {
      const answer = () => response.end('answer to ' + request.url);
      if (request.url === '/first') {
        response.write('begun, ');
        first = answer; // once all have come
      } else setTimeout(answer, 100);
      if (request.url === '/third') first();
    }).listen(0, '127.0.0.1');`;
  const server = await open(t, program(t, 'app.mjs', text), { loops: 1, drainTimeoutMs: 20_000 });
  const client = await connect(t, portOf(server), false);
  const ask = (path: string) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`;
  let answers = '';
  client.on('data', (text) => {
    answers += text;
  });
  client.write(ask('/first'));
  await waitFor(() => answers.includes('begun, '));
  const reloaded = server.reload();
  await waitFor(() => server.status().some(({ state }) => state === 'draining'));
  client.write(ask('/second') + ask('/third'));
  await once(client, 'close');
  await reloaded;
  assert.deepEqual(
    answers.match(/answer to \/(first|second|third)/g),
    ['first', 'second', 'third'].map((name) => `answer to /${name}`),
  );
  assert.deepEqual(answers.match(/Connection: [\w-]+/g)?.slice(1), [
    'Connection: keep-alive',
    'Connection: close',
  ]);
});

test('a program is notified when a drain begins', async (t) => {
  const text = `import { subscribe } from 'node:diagnostics_channel';
    import { createServer } from 'node:http';
    const held = new Set();
    subscribe('manycore:server:drain', ({ deadlineMs }) => {
      for (const response of held) response.end('the end, within ' + deadlineMs);
    });
    createServer((request, response) => {
      held.add(response);
      response.write('events: ');
    }).listen(0, '127.0.0.1');`;
  const server = await open(t, program(t, 'app.mjs', text), { loops: 1, drainTimeoutMs: 60_000 });
  const events = await begin(portOf(server), '/');
  await server.reload();
  assert.equal(await events.body, 'events: the end, within 60000');
});
