// Apps that share a port by name: each gets the connections of clients that ask for it, and no other.
// Long (over 400 lines), because each form of a request and each change of the apps has a test of its own.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmodSync, readFileSync } from 'node:fs';
import { Agent, type ClientRequest, createServer, type RequestOptions, request } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import { request as secureRequest } from 'node:https';
import { connect, type Socket } from 'node:net';
import { dirname } from 'node:path';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import type { ServedApp, ServeOptions } from '../../src/serve/index.js';
import { matchesName } from '../../src/serve/loop/clients/misdirected.js';
import { fillServeOptions } from '../../src/serve/options.js';
import { withDeadline } from '../support/index.js';
import { cert, key } from './apps/certificate.js';
import { bodyOf, keepBusy, portOf } from './client.js';
import { open, othersNeedRoot, program, skip } from './served.js';

const host = '127.0.0.1';
/** Beyond the ten seconds that a client has for a name. */
const deadlineMs = 30_000;

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
  return open(t, app, { loops: 1, serverNames, args });
}

/** Answer to a request for `name`, with its status. */
async function ask(port: number, name: string, options: RequestOptions = {}): Promise<string> {
  const sent = request({ port, host, agent: false, headers: { Host: name }, ...options });
  sent.end(options.method === 'POST' ? 'body' : undefined);
  return await answerOf(sent);
}

/** All that comes over a connection, which is closed. */
function wholeOf(socket: Socket, what: string): Promise<string> {
  return withDeadline(text(socket), deadlineMs, what).finally(() => socket.destroy());
}

/** Status and body; a request without an answer in time ends. */
async function answerOf(sent: ClientRequest): Promise<string> {
  const whole = async (): Promise<string> => {
    const [response] = await once(sent, 'response');
    return `${response.statusCode} ${await text(response)}`.trim();
  };
  return await withDeadline(whole(), deadlineMs, `the answer to ${sent.method} ${sent.host}`).catch(
    (error) => {
      sent.destroy();
      throw error;
    },
  );
}

async function askSecure(port: number, servername: string, name = servername): Promise<string> {
  const options = { port, host, servername, headers: { Host: name }, rejectUnauthorized: false };
  const sent = secureRequest({ ...options, agent: false });
  sent.end();
  return await answerOf(sent);
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
  await withDeadline(once(patient, 'data'), deadlineMs, 'the first answer');
  patient.end(foreign);
  assert.match(await wholeOf(patient, 'the second answer'), /^HTTP\/1.1 421 /);
  const hasty = connect(port, host);
  hasty.end(`${own}\r\n${foreign}`);
  assert.doesNotMatch(await wholeOf(hasty, 'the answers').catch(() => ''), /421/); // that would be the answer to its first
  const upgraded = connect(port, host);
  upgraded.end(own + upgrade);
  assert.match(await wholeOf(upgraded, 'the upgrade'), /^HTTP\/1.1 101 /);
});

/** The answer to these bytes: the name of an app, or a status. */
async function answerTo(port: number, bytes: string): Promise<string> {
  const socket = connect(port, host);
  socket.write(bytes, 'latin1');
  const answer = await wholeOf(
    socket,
    `the end of the answer to ${JSON.stringify(bytes.slice(0, 80))}`,
  );
  const [, status, body] = /^HTTP\/1.1 (\d+) [^]*?\r\n\r\n([^]*)/.exec(answer) ?? [];
  return (status === '200' ? body?.trim() : status) ?? `no answer but ${JSON.stringify(answer)}`;
}

/** Two apps, `first` and `second`, that share a port and end each connection. */
async function shareTwo(t: TestContext): Promise<number> {
  const app = (name: string) =>
    program(
      t,
      'app.mjs',
      `import { createServer } from 'node:http';
      createServer((_request, response) => {
        response.writeHead(200, { Connection: 'close', 'Content-Length': ${name.length} }).end('${name}');
      }).listen(Number(process.argv[2] ?? 0), '127.0.0.1');`,
    );
  const first = await share(t, app('first'), ['first', '*.first', '127.0.0.1']);
  await share(t, app('second'), ['second'], first);
  return portOf(first);
}

const close = 'Connection: close\r\n\r\n';

test('each form of a target, and each way to name a host twice, has one meaning', {
  skip,
}, async (t) => {
  const port = await shareTwo(t);
  for (const [head, expected] of [
    ['GET / HTTP/1.1\r\nHost: first', 'first'],
    ['GET http://second/ HTTP/1.1\r\nHost: first', 'second'],
    ['GET http://Second.:80?q HTTP/1.1\r\nHost: first', 'second'],
    ['GET http://user@second/ HTTP/1.1\r\nHost: first', '400'],
    ['GET http:///second HTTP/1.1\r\nHost: first', '400'],
    ['GET http://third/ HTTP/1.1\r\nHost: first', '421'],
    ['OPTIONS * HTTP/1.1\r\nHost: second', 'second'],
    ['GET //second/ HTTP/1.1\r\nHost: first', 'first'],
    ['GET / HTTP/1.1\r\nHost: first\r\nHost: second', '400'],
    ['GET / HTTP/1.1\r\nHost: first\r\nhost: first', '400'],
    ['GET http://second/ HTTP/1.1\r\nHost: first\r\nHost: second', '400'],
    ['GET / HTTP/1.1\r\nX: y\r\n Host: second\r\nHost: first', '400'],
    ['GET / HTTP/1.1\r\nHost: first\r\n second', '400'],
    ['GET / HTTP/1.1\r\nHost : second\r\nHost: first', '400'],
    ['GET / HTTP/1.1\r\nX: y\nHost: second\r\nHost: first', '400'],
    ['GET / HTTP/1.1\r\nX: y\rHost: second\r\nHost: first', '400'],
    ['GET / HTTP/1.1\r\nX: y', '400'],
    ['GET / HTTP/1.0\r\nX: y', '421'],
    ['GET / HTTP/1.0\r\nHost: second', 'second'],
    ['\r\nGET / HTTP/1.1\r\nHost: second', 'second'],
    ['\r\n\n\r\nGET / HTTP/1.1\r\nHost: second', 'second'],
    [`GET / HTTP/1.1\r\nX: ${'y'.repeat(17_000)}\r\nHost: first`, '431'],
    [`GET / HTTP/1.1\r\nHost: first\r\nX: ${'y'.repeat(17_000)}`, '431'],
    ['get / HTTP/1.1\r\nHost: first', '400'],
    ['GET http://second\nHost: first', 'second'],
    ['GET /\nHost: second', 'second'],
    ['GET / HTTP/1.1\nHost: first', '400'],
    ['nonsense', '400'],
  ] as const) {
    assert.equal(await answerTo(port, `${head}\r\n${close}`), expected, head.slice(0, 80));
  }
  const second = 'GET http://second/ HTTP/1.1\r\nHost: first\r\n';
  assert.equal(
    await answerTo(port, `${second}Upgrade: any\r\nConnection: upgrade\r\n\r\n`),
    'second',
  );
});

test("the app that gets a request is the one that Node's parser finds in it", {
  skip,
}, async (t) => {
  const port = await shareTwo(t);
  const plain = createServer((request, response) => {
    response.setHeader('Connection', 'close');
    response.end(JSON.stringify([request.url, request.rawHeaders]));
  });
  plain.on('connect', (_request, socket) =>
    socket.end('HTTP/1.1 200 OK\r\n\r\n["*",["Host","a"]]'),
  );
  await new Promise<void>((resolve) => plain.listen(0, host, resolve));
  t.after(() => {
    plain.close();
    plain.closeAllConnections();
  });
  const address = plain.address();
  const plainPort = typeof address === 'object' ? (address?.port ?? 0) : 0;
  const expectedOf = async (bytes: string): Promise<string> => {
    const parsed = await answerTo(plainPort, bytes);
    if (!parsed.startsWith('[')) return parsed;
    const [url, headers] = JSON.parse(parsed) as [string, string[]];
    const hosts = headers.filter((_, at) => at % 2 === 1 && /^host$/i.test(headers[at - 1] ?? ''));
    if (hosts.length > 1) return '400';
    const [, target] = /^[a-z]+:\/\/([^/?#]*)/i.exec(url) ?? [];
    if (target !== undefined && (target === '' || /@|^:/.test(target))) return '400';
    const named = target ?? hosts[0] ?? '';
    if (/[^!-~]/.test(named)) return '400';
    const name = named.replace(/:\d*$/, '').replace(/\.$/, '').toLowerCase();
    if (/^(first|.+\.first)$/.test(name)) return 'first';
    return name === 'second' ? 'second' : '421';
  };
  const names = fc.constantFrom(
    'first',
    'second',
    'Second:80',
    'a.first',
    'third',
    'x@second',
    '',
    'first second',
  );
  const targets = fc.oneof(
    fc.constantFrom('/', '*', '//second/', '/?http://second'),
    fc
      .tuple(
        fc.constantFrom('http://', 'HTTPS://', 'http:/'),
        names,
        fc.constantFrom('', '/', '?q', ':', '/@first'),
      )
      .map((parts) => parts.join('')),
  );
  const ends = fc.oneof(
    { weight: 9, arbitrary: fc.constant('\r\n') },
    fc.constantFrom('\n', '\r', '\r\r\n', '\r\n '),
  );
  const fields = fc.oneof(
    fc
      .tuple(
        fc.constantFrom('Host:', 'hOST: ', 'Host:\t', 'Host : ', ' Host: ', 'X-Host: ', 'Host'),
        names,
      )
      .map((parts) => parts.join('')),
    fc.constantFrom('X: y', 'X:', ': y', 'X: \0', 'H\xf6st: second', 'X: \xff'),
  );
  const heads = fc.record({
    before: fc.constantFrom('', '', '\r\n', '\n', ' '),
    method: fc.constantFrom('GET', 'GET', 'OPTIONS', 'get', 'FOO'),
    space: fc.constantFrom(' ', ' ', '  ', '\t'),
    target: targets,
    version: fc.constantFrom(' HTTP/1.1', ' HTTP/1.1', ' HTTP/1.0', '', ' HTTP/3.0'),
    end: ends,
    lines: fc.array(fc.tuple(fields, ends), { minLength: 1, maxLength: 3 }),
  });
  await fc.assert(
    fc.asyncProperty(heads, async ({ before, method, space, target, version, end, lines }) => {
      const head = before + method + space + target + version + end + lines.flat().join('');
      const bytes = `${head}Connection: close\r\n\r\n`;
      // Which refusal it is depends on what is read first.
      const [got, expected] = [await answerTo(port, bytes), await expectedOf(bytes)];
      if (!(/^4/.test(got) && /^4/.test(expected)))
        assert.equal(got, expected, JSON.stringify(bytes));
    }),
    { numRuns: 400 },
  );
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
      const answered = once(stream.resume(), 'response');
      const [headers] = await withDeadline(answered, deadlineMs, `the answer of ${authority}`);
      return headers[':status'];
    };
    assert.equal(await statusFor('second.example'), 200);
    assert.equal(await statusFor('first.example'), 421);
    assert.equal(await statusFor(`second.example:${port}`), 200);
  } finally {
    session.destroy();
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
