// Apps that share a port by name: each gets the connections of clients that ask for it, and no other.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmodSync, readFileSync } from 'node:fs';
import { Agent, type RequestOptions, request } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import { request as secureRequest } from 'node:https';
import { connect } from 'node:net';
import { dirname } from 'node:path';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import type { ServedApp, ServeOptions } from '../../src/serve/index.js';
import { matchesName } from '../../src/serve/loop/misdirected.js';
import { fillServeOptions } from '../../src/serve/options.js';
import { cert, key } from './apps/certificate.js';
import { bodyOf, keepBusy, portOf } from './client.js';
import { open, othersNeedRoot, program, skip } from './served.js';

const host = '127.0.0.1';

/** An app that says its name, and what was sent to it. */
function named(t: TestContext, name: string): string {
  return program(
    t,
    'app.mjs',
    `import { createServer } from 'node:http';
    createServer(async (request, response) => {
      let body = '';
      for await (const piece of request) body += piece;
      response.end('${name} ' + body);
    })
      .on('upgrade', (_request, socket) => socket.end('HTTP/1.1 101 Fine\\r\\n\\r\\n'))
      .listen(Number(process.argv[2] ?? 0), '127.0.0.1');`,
  );
}

/** An app with TLS; both versions of HTTP. */
function secure(t: TestContext, name: string): string {
  return program(
    t,
    'app.mjs',
    `import { createSecureServer } from 'node:http2';
    const options = { allowHTTP1: true, ...${JSON.stringify({ cert, key })} };
    createSecureServer(options, (_request, response) => response.end('${name}'))
      .listen(Number(process.argv[2] ?? 0), '127.0.0.1');`,
  );
}

/** Serves on the port of `first`, or on any. */
function share(
  t: TestContext,
  app: string,
  serverNames: string[],
  first?: ServedApp,
): Promise<ServedApp> {
  const args = first === undefined ? [] : [String(portOf(first))];
  return open(t, app, { loops: 1, serverNames, args, drainTimeoutMs: 1000 });
}

/** Answer to a request for `name`, with its status. */
async function ask(port: number, name: string, options: RequestOptions = {}): Promise<string> {
  const sent = request({ port, host, agent: false, headers: { Host: name }, ...options });
  sent.end(options.method === 'POST' ? 'body' : undefined);
  const [response] = await once(sent, 'response');
  return `${response.statusCode} ${await text(response)}`.trim();
}

async function askSecure(port: number, servername: string, name = servername): Promise<string> {
  const options = { port, host, servername, headers: { Host: name }, rejectUnauthorized: false };
  const sent = secureRequest({ ...options, agent: false });
  sent.end();
  const [response] = await once(sent, 'response');
  return `${response.statusCode} ${await text(response)}`.trim();
}

test('apps share a port by the names that clients ask for', { skip }, async (t) => {
  const first = await share(t, named(t, 'first'), ['first.example', '*.first.example']);
  await share(t, named(t, 'second'), ['second.example'], first);
  const port = portOf(first);
  assert.equal(await ask(port, 'first.example'), '200 first');
  assert.equal(await ask(port, `Www.First.Example:${port}`), '200 first');
  assert.equal(await ask(port, 'second.example', { method: 'POST' }), '200 second body');
  assert.match(await ask(port, 'third.example'), /^421 No app here/);
});

test('a connection stays with its app, whatever is asked for over it', { skip }, async (t) => {
  const first = await share(t, named(t, 'first'), ['first.example', 'www.first.example']);
  await share(t, named(t, 'second'), ['second.example'], first);
  const port = portOf(first);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.after(() => agent.destroy());
  assert.equal(await ask(port, 'first.example', { agent }), '200 first');
  assert.equal(await ask(port, 'www.first.example', { agent }), '200 first');
  assert.equal(await ask(port, 'second.example', { agent }), '421');
  assert.equal(await ask(port, 'second.example', { agent }), '200 second'); // 421 has closed it
  const upgrade = `Connection: Upgrade\r\nUpgrade: any\r\n\r\n`;
  const foreign = `GET / HTTP/1.1\r\nHost: second.example\r\n${upgrade}`;
  const own = 'GET / HTTP/1.1\r\nHost: first.example\r\n';
  const patient = connect(port, host);
  patient.write(`${own}\r\n`);
  await once(patient, 'data');
  patient.end(foreign);
  assert.match(await text(patient), /^HTTP\/1.1 421 /);
  const hasty = connect(port, host);
  hasty.end(`${own}\r\n${foreign}`);
  assert.doesNotMatch(await text(hasty).catch(() => ''), /421/); // that would be the answer to its first
  const upgraded = connect(port, host);
  upgraded.end(own + upgrade);
  assert.match(await text(upgraded), /^HTTP\/1.1 101 /);
});

test('over TLS the handshake names the app', { skip }, async (t) => {
  const first = await share(t, secure(t, 'first'), ['first.example']);
  await share(t, secure(t, 'second'), ['second.example'], first);
  const port = portOf(first);
  assert.equal(await askSecure(port, 'first.example'), '200 first');
  assert.equal(await askSecure(port, 'second.example'), '200 second');
  assert.equal(await askSecure(port, 'first.example', 'second.example'), '421');
  await assert.rejects(askSecure(port, 'third.example'), /unrecognized name/);
  const session = connectHttp2(`https://${host}:${port}`, {
    servername: 'second.example',
    rejectUnauthorized: false,
  });
  try {
    const statusFor = async (authority: string): Promise<unknown> => {
      const stream = session.request({ ':authority': authority });
      const [headers] = await once(stream.resume(), 'response');
      return headers[':status'];
    };
    assert.equal(await statusFor('second.example'), 200);
    assert.equal(await statusFor('first.example'), 421);
    assert.equal(await statusFor(`second.example:${port}`), 200);
  } finally {
    session.close();
  }
});

test('a name has one app, and the port is free after the last', { skip }, async (t) => {
  const first = await share(t, named(t, 'first'), ['first.example']);
  const port = portOf(first);
  await assert.rejects(
    share(t, named(t, 'rival'), ['*.example'], first),
    /EADDRINUSE .*another app has one of/,
  );
  const second = await share(t, named(t, 'second'), ['second.example'], first);
  await first.close();
  assert.match(await ask(port, 'first.example'), /^421/);
  assert.equal(await ask(port, 'second.example'), '200 second');
  const again = await share(t, named(t, 'again'), ['*.first.example', 'first.example'], second);
  assert.equal(await ask(port, 'first.example'), '200 again');
  await Promise.all([second.close(), again.close()]);
  await assert.rejects(ask(port, 'second.example'), { code: 'ECONNREFUSED' });
});

test('a reload and a change of size lose nothing where apps share a port', { skip }, async (t) => {
  const first = await share(t, named(t, 'first'), [host]);
  const second = await share(t, named(t, 'second'), ['second.example'], first);
  const load = keepBusy(portOf(first), 4, false);
  for (let round = 0; round < 3; round += 1) {
    await first.reload();
    await second.reload();
    await first.scale(2);
    await first.scale(1);
  }
  assert.deepEqual((await load.stop()).failures, []);
  assert.ok(load.answers() > 0);
});

test('a blocked app delays no other', { skip }, async (t) => {
  const blocked = await open(
    t,
    program(
      t,
      'app.mjs',
      `import { createServer } from 'node:http';
      createServer((request, response) => { for (;;); }).listen(0, '127.0.0.1');`,
    ),
    { loops: 1, serverNames: ['blocked.example'], drainTimeoutMs: 1000, overloadMs: 0 },
  );
  const other = await share(t, named(t, 'other'), [host], blocked);
  const asked = Array.from({ length: 20 }, () => ask(portOf(blocked), 'blocked.example'));
  const lost = Promise.allSettled(asked);
  for (let round = 0; round < 20; round += 1) {
    assert.equal(await bodyOf(portOf(other)), 'other ');
  }
  await blocked.close();
  for (const { status } of await lost) assert.equal(status, 'rejected');
});

test('each app is served by its own user and group', {
  skip: skip || othersNeedRoot(),
}, async (t) => {
  const whose = (name: string): string => {
    const app = program(
      t,
      'app.mjs',
      `export default (_request, response) => response.end('${name} ' + process.getuid() + ':' + process.getgid());`,
    );
    chmodSync(dirname(app), 0o755);
    return app;
  };
  const both = { plan: 'perchild', processes: 1, loops: { min: 1, max: 2 } } as const;
  const serverNames = ['first.example'];
  const first = await open(t, whose('first'), { ...both, port: 0, host, serverNames });
  await open(t, whose('second'), {
    ...both,
    port: portOf(first),
    host,
    serverNames: ['second.example'],
    user: 'nobody',
    group: 4242,
  });
  const [, , uid] = /^nobody:(.*?):(\d+)/m.exec(readFileSync('/etc/passwd', 'utf8')) ?? [];
  assert.equal(await ask(portOf(first), 'first.example'), '200 first 0:0');
  assert.equal(await ask(portOf(first), 'second.example'), `200 second ${uid}:4242`);
});

test('names are compared as clients write them', () => {
  const names = ['a.example', '*.b.example', '[::1]'];
  for (const own of ['a.example', 'A.Example.', 'a.example:80', 'x.b.example', '[::1]:80']) {
    assert.ok(matchesName(names, own), own);
  }
  for (const foreign of ['', undefined, 'b.example', '.b.example', 'a.example.org', '::1']) {
    assert.ok(!matchesName(names, foreign), foreign);
  }
});

test('names are given as one writes them, or refused in a sentence', () => {
  const fill = (serverNames: unknown) =>
    fillServeOptions(Object(JSON.parse(JSON.stringify({ serverNames }))) satisfies ServeOptions);
  assert.deepEqual(fill(['A.Example.', '*.bücher.example', '127.0.0.1', '[::1]']).serverNames, [
    'a.example',
    '*.xn--bcher-kva.example',
    '127.0.0.1',
    '[::1]',
  ]);
  for (const wrong of ['', '*', '*.', 'a b', 'http://a.example', 'a.example:80', 'a/b', 'a.*']) {
    assert.throws(() => fill([wrong]), { code: 'OPTION_INVALID' }, wrong);
  }
  assert.throws(() => fill('a.example'), { code: 'OPTION_INVALID' });
});
