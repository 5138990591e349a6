// Faults between the nodes of a cluster and their server: nothing is lost silently, and untrusted messages
// are refused.

import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { maxAgeMs } from '../../src/cluster/bus/signature.js';
import { announcements } from '../../src/lib/index.js';
import { library, runProgram } from '../faults/child.js';
import { cert, key } from '../serve/apps/certificate.js';
import { waitFor } from '../support/index.js';
import { eventually, joinBus, refusals, skip, startServer } from './server.js';

/** Resolves with the message about the next lost connection. */
function nextLost(): Promise<unknown> {
  return new Promise((resolve) => {
    const hear = (message: unknown): void => {
      announcements.clusterLost.unsubscribe(hear);
      resolve(message);
    };
    announcements.clusterLost.subscribe(hear);
  });
}

async function startNode(t: TestContext, ...args: string[]): Promise<ChildProcess> {
  const child = fork(new URL('./apps/node.js', import.meta.url), args, { stdio: 'inherit' });
  t.after(() => child.kill('SIGKILL'));
  await once(child, 'message');
  return child;
}

async function kill(child: ChildProcess): Promise<void> {
  child.kill('SIGKILL');
  await once(child, 'exit');
}

test('no server, a silent one, one that is not NATS', { skip }, async (t) => {
  const unreachable = { code: 'CLUSTER_UNREACHABLE', message: /127\.0\.0\.1:1\b/ };
  await assert.rejects(joinBus(t, { url: 'nats://127.0.0.1:1' }), unreachable);
  for (const greeting of ['', 'HTTP/1.1 400 Bad Request\r\n\r\n']) {
    const sockets = new Set<Socket>();
    const other = createServer((socket) => {
      sockets.add(socket.on('error', () => {}));
      socket.write(greeting);
      socket.on('close', () => sockets.delete(socket));
    }).listen(0, '127.0.0.1');
    t.after(() => other.close());
    await once(other, 'listening');
    const url = `nats://127.0.0.1:${Object(other.address()).port}`;
    await assert.rejects(joinBus(t, { url }, { timeoutMs: 300 }), { code: 'CLUSTER_UNREACHABLE' });
    await eventually(() => assert.equal(sockets.size, 0)); // nothing keeps the program alive
  }
});

test('credentials that the server refuses', { skip }, async (t) => {
  const server = await startServer(t, ['--user', 'anna', '--pass', 'right']);
  await assert.rejects(joinBus(t, server), { code: 'CLUSTER_REFUSED', message: /credentials/ });
  const wrong = { servers: server.url, user: 'anna', pass: 'wrong' };
  await assert.rejects(joinBus(t, server, { nats: wrong }), (error: Error) => {
    assert.equal(Object(error).code, 'CLUSTER_REFUSED');
    assert.doesNotMatch(error.message, /wrong/);
    return true;
  });
  const { cluster } = await joinBus(t, server, { nats: { ...wrong, pass: 'right' } });
  assert.deepEqual(cluster.nodes, []);
  const creds = { servers: server.url, credsFile: '/nowhere/at.all' };
  await assert.rejects(joinBus(t, server, { nats: creds }), {
    code: 'OPTION_INVALID',
    message: /credsFile \/nowhere\/at\.all cannot be read/,
  });
  const noCreds = { servers: server.url, credsFile: fileURLToPath(import.meta.url) };
  await assert.rejects(joinBus(t, server, { nats: noCreds }), {
    code: 'OPTION_INVALID',
    message: /it holds no credentials/,
  });
});

test('credentials that the server no longer accepts: the cluster is left with CLUSTER_REFUSED', {
  skip,
}, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'manycore-nats-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'nats.conf');
  const write = (password: string): void =>
    writeFileSync(file, `authorization: { user: anna, password: ${password} }\n`);
  write('right');
  const server = await startServer(t, ['-c', file]);
  const nats = { servers: server.url, user: 'anna', pass: 'right' };
  const { cluster } = await joinBus(t, server, { nats });
  write('changed');
  server.child.kill('SIGHUP'); // it reads the file again
  await assert.rejects(cluster.closed, {
    code: 'CLUSTER_REFUSED',
    message: /^the NATS server at nats:\/\/127\.0\.0\.1:\d+ refuses these credentials: /,
  });
});

test('a missing permission rejects the waiting request', { skip }, async (t) => {
  const file = join(tmpdir(), `manycore-nats-${process.pid}.conf`);
  const may = 'publish: { deny: "manycore.send.secret" }';
  const user = `{ user: anna, password: right, permissions: { ${may} } }`;
  writeFileSync(file, `authorization: { users: [ ${user} ] }\n`);
  const server = await startServer(t, ['-c', file]);
  const why = refusals(t);
  const nats = { servers: server.url, user: 'anna', pass: 'right' };
  const { bus } = await joinBus(t, server, { nats });
  bus.consumer('open', (message) => message.reply('yes'));
  await bus.drained();
  assert.equal((await bus.request('open', 0)).body, 'yes');
  await assert.rejects(bus.request('secret', 0), { code: 'CLUSTER_REFUSED', message: /permit/ });
  assert.match(why.join(), /permit/);
});

test('a restarted server: messages wait meanwhile, and arrive in order', {
  skip,
}, async (t) => {
  const server = await startServer(t);
  const [here, there] = [await joinBus(t, server), await joinBus(t, server)];
  const got: unknown[] = [];
  there.bus.consumer('count', ({ body }) => void got.push(body));
  there.bus.consumer('echo', (message) => message.reply(message.body));
  await there.bus.drained();
  here.bus.send('count', -1);
  await eventually(() => assert.deepEqual(got, [-1])); // the server takes unsent messages with it
  let [lost, back] = [0, 0];
  const noteLost = (): void => {
    lost += 1;
  };
  const noteBack = (): void => {
    back += 1;
  };
  announcements.clusterLost.subscribe(noteLost);
  announcements.clusterBack.subscribe(noteBack);
  t.after(() => {
    announcements.clusterLost.unsubscribe(noteLost);
    announcements.clusterBack.unsubscribe(noteBack);
  });
  await server.kill();
  await eventually(() => assert.equal(lost, 2));
  for (let sent = 0; sent < 100; sent += 1) {
    assert.equal(here.bus.send('count', sent), false); // it waits
  }
  const asked = here.bus.request('echo', 'after all').then(
    ({ body }) => body,
    (error: unknown) => Object(error).code,
  );
  await server.restart();
  await eventually(() => assert.equal(back, 2));
  // Waiting messages may go out before the other node has subscribed at the new server.
  await here.bus.drained();
  assert.match(String(await asked), /^after all$|^BUS_NO_HANDLERS$/);
  await waitFor(() => here.bus.request('echo', 'there again'));
  const numbers = got.map(Number);
  assert.deepEqual(
    numbers,
    [...numbers].sort((a, b) => a - b),
  );
  assert.equal(numbers.length - 1 + here.bus.stats.undelivered, 100); // each arrived, or was counted
  assert.deepEqual(here.cluster.nodes, [there.cluster.node]);
});

test('messages that wait for the server longer than the maximum age are accepted afterwards', {
  skip,
}, async (t) => {
  const server = await startServer(t);
  const secret = 'nobody else knows this';
  const [here, there] = [
    await joinBus(t, server, { secret }),
    await joinBus(t, server, { secret }),
  ];
  const got: unknown[] = [];
  there.bus.consumer('count', ({ body }) => void got.push(body));
  await there.bus.drained();
  here.bus.send('count', 'before');
  await eventually(() => assert.deepEqual(got, ['before']));
  const why = refusals(t);
  let lost = 0;
  const tell = (): void => {
    lost += 1;
  };
  announcements.clusterLost.subscribe(tell);
  t.after(() => announcements.clusterLost.unsubscribe(tell));
  await server.kill();
  await waitFor(() => lost === 2); // both nodes are of this process
  assert.equal(here.bus.send('count', 'meanwhile'), false); // it waits
  // The clocks of both advance by more than the maximum age of a frame.
  const now = Date.now.bind(Date);
  t.mock.method(Date, 'now', () => now() + 2 * maxAgeMs);
  await server.restart();
  await here.bus.drained();
  await there.bus.drained();
  // If the other came back later, the server has reported no subscriber: then it is counted.
  await eventually(() => assert.equal(got.length - 1 + here.bus.stats.undelivered, 1));
  await waitFor(() => {
    here.bus.send('count', 'after');
    return got.includes('after');
  });
  assert.deepEqual(why, []);
});

test('streams end when the connection is lost: arrivals are unknown', {
  skip,
}, async (t) => {
  const server = await startServer(t);
  const [here, there] = [await joinBus(t, server), await joinBus(t, server)];
  const ends: unknown[] = [];
  there.bus.acceptStreams('lines', (stream) => {
    stream.on('error', (error) => void ends.push(error));
  });
  await there.bus.drained();
  const stream = await here.bus.openStream('lines');
  stream.on('error', (error) => void ends.push(error));
  stream.write('before');
  await server.kill();
  await eventually(() => assert.equal(ends.length, 2));
  for (const each of ends) assert.equal(Object(each).code, 'BUS_CONSUMER_LOST');
});

test('a server that is away: waiting messages are bounded, and senders get an error', {
  skip,
}, async (t) => {
  const server = await startServer(t);
  const { bus, cluster } = await joinBus(t, server);
  const lost = nextLost();
  await server.kill();
  await lost;
  const full = { code: 'BUS_FULL', message: /the NATS server, which is not connected/ };
  assert.throws(() => {
    for (let sent = 0; sent < 20_000; sent += 1) bus.send('any', sent);
  }, full);
  await assert.rejects(bus.request('any', 1), full);
  const told = nextLost();
  await cluster.close();
  assert.deepEqual(await told, { unconfirmed: 10_000 });
  await assert.rejects(bus.request('any', 1), { code: 'BUS_NO_HANDLERS' }); // limited to one machine again
});

test('TLS: with the authority of the server, and not without', { skip }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'manycore-tls-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const [certFile, keyFile] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
  writeFileSync(certFile, cert);
  writeFileSync(keyFile, key);
  const server = await startServer(t, ['--tls', '--tlscert', certFile, '--tlskey', keyFile]);
  const servers = `tls://localhost:${server.port}`;
  await assert.rejects(joinBus(t, server, { nats: { servers, tls: {} } }), {
    code: 'CLUSTER_UNREACHABLE',
    message: /certificate/,
  });
  const { bus } = await joinBus(t, server, { nats: { servers, tls: { caFile: certFile } } });
  bus.consumer('safe', (message) => message.reply('yes'));
  await bus.drained();
  assert.equal((await bus.request('safe', 0)).body, 'yes');
});

test('without the client of NATS', async (t) => {
  const { stdout, status } = await runProgram(
    t,
    `import { register } from 'node:module';
    register('data:text/javascript,' + encodeURIComponent(\`
      export async function resolve(specifier, context, next) {
        if (specifier.startsWith('@nats-io/')) throw new Error('it is not installed');
        return await next(specifier, context);
      }\`));
    const { cluster } = await import('${library}');
    await cluster({ nats: 'nats://127.0.0.1:1' }).catch(({ code, message }) => {
      console.log(code, message);
    });`,
  );
  assert.equal(status, 0);
  assert.match(stdout, /^CLUSTER_CLIENT_MISSING .*npm install @nats-io\/transport-node/);
});

/** Behaves like a NATS server, and ends the connection at the subscription to announcements. */
async function startFlaky(t: TestContext): Promise<string> {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    const info = {
      server_id: 'a',
      version: '2.10.0',
      proto: 1,
      max_payload: 2 ** 20,
      headers: true,
    };
    socket.write(`INFO ${JSON.stringify(info)}\r\n`);
    socket.on('data', (bytes) => {
      const said = bytes.toString('latin1');
      if (said.includes('SUB manycore.nodes ')) socket.destroy();
      else if (said.includes('PING')) socket.write('PONG\r\n');
    });
  }).listen(0, '127.0.0.1');
  t.after(() => server.close());
  await once(server, 'listening');
  return `nats://127.0.0.1:${Object(server.address()).port}`;
}

for (const { title, prepare, codes } of [
  {
    title: 'a server that goes away while it is joined',
    prepare: '',
    codes: /^failed CLUSTER_UNREACHABLE.*\n/,
  },
  {
    title: 'a consumer whose address cannot travel',
    prepare: "bus.consumer('x'.repeat(2000), () => {});",
    codes: /^failed OPTION_INVALID.*\n/,
  },
]) {
  test(`${title}: the connection is closed, and the program ends`, async (t) => {
    const url = await startFlaky(t);
    const { stdout, stderr, status } = await runProgram(
      t,
      `import { bus, cluster } from '${library}';
      ${prepare}
      await cluster({ nats: '${url}' }).then(
        () => console.log('joined'),
        ({ code, message }) => console.log('failed', code, message),
      );
      bus.send('x', 0); // the bus is local again`,
    );
    assert.match(stdout, codes);
    assert.deepEqual([stderr, status], ['', 0]);
  });
}

test('a server that reads slowly slows senders down', { skip }, async (t) => {
  const server = await startServer(t);
  const [here, there] = [await joinBus(t, server), await joinBus(t, server)];
  let count = 0;
  there.bus.consumer<{ at: number }>('count', ({ body }) => {
    assert.equal(body.at, count);
    count += 1;
  });
  await there.bus.drained();
  server.child.kill('SIGSTOP');
  const bytes = new Uint8Array(100_000);
  let sent = 0;
  assert.throws(
    () => {
      for (; sent < 1000; sent += 1) here.bus.send('count', { at: sent, bytes });
    },
    { code: 'BUS_FULL', message: /reads more slowly/ },
  );
  assert.ok(sent > 100);
  server.child.kill('SIGCONT');
  await eventually(() => assert.equal(count, sent));
  await here.bus.drained();
  assert.equal(here.bus.send('count', { at: sent, bytes: undefined }), true);
});

test('a node that is killed: the next message goes to another, or nowhere, at once', {
  skip,
}, async (t) => {
  const server = await startServer(t);
  const here = await joinBus(t, server);
  const [first, second] = [await startNode(t, server.url), await startNode(t, server.url)];
  await eventually(() => assert.equal(here.cluster.nodes.length, 2));
  const left = once(here.cluster, 'leave');
  await kill(first);
  const pids = new Set<unknown>();
  // The server detects it by the end of the connection, which the kernel sends before `exit` arrives here.
  await eventually(async () => {
    assert.equal((await here.bus.request('who', 0, { timeoutMs: 100 })).body, second.pid);
  });
  for (let asked = 0; asked < 50; asked += 1) {
    pids.add((await here.bus.request('who', 0, { timeoutMs: 5000 })).body);
  }
  assert.deepEqual([...pids], [second.pid]);
  assert.equal((await left)[0].pid, first.pid);
  await kill(second);
  await eventually(() =>
    assert.rejects(here.bus.request('who', 0, { timeoutMs: 100 }), { code: 'BUS_NO_HANDLERS' }),
  );
});
