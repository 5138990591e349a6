// Files over HTTP, as clients see them. Each test makes its folder.
// Long (over 400 lines), because each rule of HTTP for files is a test.

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import fs, {
  mkdirSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import {
  createServer,
  request as httpRequest,
  type IncomingHttpHeaders,
  type RequestListener,
} from 'node:http';
import { connect as connectHttp2, createServer as createHttp2 } from 'node:http2';
import { createServer as createSecure, request as httpsRequest } from 'node:https';
import { syncBuiltinESMExports } from 'node:module';
import { type AddressInfo, connect, createServer as createNetServer, type Server } from 'node:net';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { type StaticOptions, serveStatic } from '../../src/http-apps/static/static.js';
import { nativeBinding } from '../../src/native.js';
import { cert, key } from '../serve/apps/certificate.js';
import { folder } from '../serve/served.js';
import { openDescriptors, waitFor } from '../support/index.js';

const hugeBytes = 2 ** 26;

interface Got {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

function listen(t: TestContext, server: Server): Promise<number> {
  t.after(() => server.close());
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
  });
}

function get(
  port: number,
  path: string,
  headers: Record<string, string> = {},
  method = 'GET',
  request: typeof httpRequest = httpRequest,
): Promise<Got> {
  const options = { port, host: '127.0.0.1', path, headers, method, agent: false };
  return new Promise((resolve, reject) => {
    const asked = request({ ...options, rejectUnauthorized: false } as object, (response) => {
      const { statusCode: status = 0 } = response;
      buffer(response).then((body) => resolve({ status, headers: response.headers, body }), reject);
    });
    asked.on('error', reject);
    asked.end();
  });
}

/** A folder with files of every kind, and a port that serves it. */
async function serveFiles(t: TestContext, options: StaticOptions = {}) {
  const outside = folder(t);
  const root = join(outside, 'root');
  mkdirSync(join(root, 'inner'), { recursive: true });
  mkdirSync(join(root, 'bare'));
  writeFileSync(join(outside, 'secret.txt'), 'secret');
  writeFileSync(join(root, 'index.html'), '<h1>here</h1>');
  writeFileSync(join(root, 'small.txt'), 'small');
  writeFileSync(join(root, 'empty.txt'), '');
  writeFileSync(join(root, 'bare', 'a b&c#d.txt'), 'odd name');
  writeFileSync(join(root, '.hidden'), 'hidden');
  const large = randomBytes(3 * 2 ** 20 + 17);
  writeFileSync(join(root, 'large.bin'), large);
  // More than the kernel keeps for a connection: zeros that take no space.
  writeFileSync(join(root, 'huge.bin'), '');
  truncateSync(join(root, 'huge.bin'), hugeBytes);
  writeFileSync(join(root, 'app.js'), 'plain();');
  writeFileSync(join(root, 'app.js.gz'), gzipSync('plain();'));
  writeFileSync(join(root, 'app.js.br'), 'brotli');
  symlinkSync(join(outside, 'secret.txt'), join(root, 'link.txt'));
  symlinkSync(outside, join(root, 'linked'));
  symlinkSync(join(root, 'small.txt'), join(root, 'within.txt'));
  const listener = serveStatic(root, options);
  const port = await listen(
    t,
    createServer((request, response) => listener(request, response)),
  );
  return { root, large, port };
}

test('a file comes with its type, length and times', async (t) => {
  const { port, root } = await serveFiles(t, { maxAgeMs: 60_000 });
  const { status, headers, body } = await get(port, '/small.txt?version=2');
  assert.equal(status, 200);
  assert.equal(String(body), 'small');
  assert.equal(headers['content-type'], 'text/plain; charset=utf-8');
  assert.equal(headers['content-length'], '5');
  assert.equal(headers['last-modified'], statSync(join(root, 'small.txt')).mtime.toUTCString());
  assert.equal(headers['cache-control'], 'public, max-age=60');
  assert.equal(headers['accept-ranges'], 'bytes');
});

test('large and empty files come whole, also one after the other over one connection', async (t) => {
  const { port, large } = await serveFiles(t);
  const native = nativeBinding();
  const copies = native && t.mock.method(native.NativeFileSender.prototype, 'send');
  const socket = connect(port);
  const requests = ['large.bin', 'empty.txt', 'large.bin', 'small.txt'].map(
    (name, at) =>
      `GET /${name} HTTP/1.1\r\nHost: here\r\n${at === 3 ? 'Connection: close\r\n' : ''}\r\n`,
  );
  socket.write(requests.join(''));
  const all = await buffer(socket);
  const parts = [];
  for (let at = 0; at < all.length; ) {
    const end = all.indexOf('\r\n\r\n', at) + 4;
    const length = Number(/content-length: (\d+)/i.exec(all.toString('latin1', at, end))?.[1]);
    parts.push(all.subarray(end, end + length));
    at = end + length;
  }
  assert.equal(parts.length, 4);
  assert.ok(parts[0]?.equals(large) && parts[2]?.equals(large));
  assert.deepEqual([parts[1]?.length, String(parts[3])], [0, 'small']);
  assert.ok(copies === undefined || copies.mock.callCount() >= 2, 'the kernel copies large files');
});

test('ranges are parts of the file, and impossible ones are said so', async (t) => {
  const { port, large } = await serveFiles(t);
  const part = await get(port, '/large.bin', { Range: 'bytes=100000-1999999' });
  assert.equal(part.status, 206);
  assert.equal(part.headers['content-range'], `bytes 100000-1999999/${large.length}`);
  assert.ok(part.body.equals(large.subarray(100_000, 2_000_000)));
  const last = await get(port, '/small.txt', { Range: 'bytes=-2' });
  assert.equal(String(last.body), 'll');
  const beyond = await get(port, '/small.txt', { Range: 'bytes=5-' });
  assert.equal(beyond.status, 416);
  assert.equal(beyond.headers['content-range'], 'bytes */5');
  const odd = await get(port, '/small.txt', { Range: 'lines=1-2' });
  assert.equal(odd.status, 200);
});

test('a client that has the file gets 304, and one with conditions that fail 412', async (t) => {
  const { port } = await serveFiles(t);
  const { headers } = await get(port, '/small.txt');
  const again = await get(port, '/small.txt', { 'If-None-Match': String(headers.etag) });
  assert.equal(again.status, 304);
  assert.equal(again.body.length, 0);
  const since = { 'If-Modified-Since': String(headers['last-modified']) };
  assert.equal((await get(port, '/small.txt', since)).status, 304);
  assert.equal((await get(port, '/small.txt', { 'If-Match': '"other"' })).status, 412);
  const stale = { Range: 'bytes=0-1', 'If-Range': '"other"' };
  assert.equal((await get(port, '/small.txt', stale)).status, 200);
});

test('If-Range compares strongly: what may be another version is sent whole', async (t) => {
  const { port, root } = await serveFiles(t);
  const file = join(root, 'small.txt');
  utimesSync(file, 1_000_000_000, 1_000_000_000);
  const { headers } = await get(port, '/small.txt');
  const tag = String(headers.etag);
  assert.match(tag, /^"[^"]+"$/);
  const date = String(headers['last-modified']);
  const later = new Date(Date.parse(date) + 1000).toUTCString();
  for (const [ifRange, status] of [
    [tag, 206],
    [` ${tag} `, 206],
    [date, 206],
    [`W/${tag}`, 200],
    [`"other", ${tag}`, 200],
    [`${tag}, "other"`, 200],
    [tag.slice(1), 200],
    ['"other"', 200],
    [later, 200], // RFC 9110, 13.1.5: the same date, not a later one
    ['no date', 200],
  ] as const) {
    const got = await get(port, '/small.txt', { Range: 'bytes=0-1', 'If-Range': ifRange });
    assert.equal(got.status, status, ifRange);
    assert.equal(String(got.body), status === 206 ? 'sm' : 'small');
  }
});

test('a file that has just changed has no strong validator: it may change again', async (t) => {
  const { port, root } = await serveFiles(t);
  const soon = Date.now() / 1000 + 3600; // never a second old during the test
  utimesSync(join(root, 'small.txt'), soon, soon);
  const { headers } = await get(port, '/small.txt');
  assert.match(String(headers.etag), /^W\//);
  for (const ifRange of [headers.etag, String(headers.etag).slice(2), headers['last-modified']]) {
    const asked = { Range: 'bytes=0-1', 'If-Range': String(ifRange) };
    assert.equal((await get(port, '/small.txt', asked)).status, 200, ifRange);
  }
});

test('a middleware that writes the body anew gets a weak validator', async (t) => {
  const { root } = await serveFiles(t);
  utimesSync(join(root, 'small.txt'), 1_000_000_000, 1_000_000_000);
  const listener = serveStatic(root);
  const port = await listen(
    t,
    createServer((request, response) => {
      const { write } = response;
      Object.assign(response, {
        write: (...given: unknown[]) => Reflect.apply(write, response, given),
      });
      listener(request, response);
    }),
  );
  assert.match(String((await get(port, '/small.txt')).headers.etag), /^W\//);
});

test('every form of a request target names the same file', async (t) => {
  const { port } = await serveFiles(t);
  for (const [target, status, body] of [
    ['/small.txt', 200, 'small'],
    ['/small.txt?a=http://b/', 200, 'small'],
    ['http://here/small.txt', 200, 'small'],
    ['HTTP://Other.Example:81/small.txt?q', 200, 'small'],
    ['https://[::1]:81/small.txt', 200, 'small'],
    ['http://here/', 200, '<h1>here</h1>'],
    ['http://here', 200, '<h1>here</h1>'],
    ['http://here?q', 200, '<h1>here</h1>'],
    ['http://here/inner', 301, ''],
    ['http://here/../secret.txt', 403, undefined],
    ['http://here/%2e%2e/secret.txt', 403, undefined],
    ['http://here/.hidden', 404, undefined],
    ['http://user@here/small.txt', 400, undefined],
    ['http://user:word@here/small.txt', 400, undefined],
    ['http:///small.txt', 400, undefined],
    ['http://:80/small.txt', 400, undefined],
    ['*', 404, undefined],
  ] as const) {
    const got = await get(port, target);
    assert.equal(got.status, status, target);
    if (body !== undefined) assert.equal(String(got.body), body, target);
    if (status === 301) assert.equal(got.headers.location, '/inner/');
  }
});

test('what is no file is refused, and not even opened', async (t) => {
  const { port, root } = await serveFiles(t);
  const pipes = ['pipe', 'inner/index.html', 'app.css.br'];
  for (const name of pipes) {
    assert.equal(spawnSync('mkfifo', [join(root, name)]).status, 0);
  }
  writeFileSync(join(root, 'app.css'), 'plain');
  const socket = createNetServer();
  await new Promise<void>((resolve) => socket.listen(join(root, 'socket'), resolve));
  t.after(() => socket.close());
  const device = spawnSync('mknod', [join(root, 'device'), 'c', '1', '3']).status === 0;
  const writer = spawn('/bin/sh', ['-c', 'echo text > pipe'], { cwd: root });
  t.after(() => writer.kill());
  for (const path of ['/pipe', '/socket', '/inner/', ...(device ? ['/device'] : [])]) {
    assert.equal((await get(port, path)).status, 404, path);
    assert.equal((await get(port, path, {}, 'HEAD')).status, 404, path);
  }
  const css = await get(port, '/app.css', { 'Accept-Encoding': 'br' });
  assert.equal(String(css.body), 'plain');
  // The writer still waits for a reader, which gets its text.
  const reader = spawn('cat', ['pipe'], { cwd: root });
  assert.equal(String(await buffer(reader.stdout)), 'text\n');
});

test('a variant that was compressed before goes to clients that take it', async (t) => {
  const { port } = await serveFiles(t);
  const coded = async (accept: string) => {
    const { body, headers } = await get(port, '/app.js', { 'Accept-Encoding': accept });
    assert.equal(headers.vary, 'Accept-Encoding');
    assert.equal(headers['content-type'], 'text/javascript; charset=utf-8');
    return [headers['content-encoding'], body.length];
  };
  assert.deepEqual(await coded('gzip, br'), ['br', 6]);
  assert.deepEqual(await coded('gzip;q=0.5'), ['gzip', gzipSync('plain();').length]);
  assert.deepEqual(await coded('br;q=0, deflate'), [undefined, 8]);
  const without = await serveFiles(t, { precompressed: false });
  const plain = await get(without.port, '/app.js', { 'Accept-Encoding': 'br' });
  assert.equal(String(plain.body), 'plain();');
});

test('HEAD has the headers alone', async (t) => {
  const { port, large } = await serveFiles(t);
  const { status, headers, body } = await get(port, '/large.bin', {}, 'HEAD');
  assert.equal(status, 200);
  assert.equal(headers['content-length'], String(large.length));
  assert.equal(body.length, 0);
});

test('nothing leads out of the folder, and nothing hidden is shown', async (t) => {
  const { port } = await serveFiles(t);
  const paths = [
    '/../secret.txt',
    '/inner/../../secret.txt',
    '/..%2fsecret.txt',
    '/%2e%2e/secret.txt',
    '/..%5csecret.txt',
    '/link.txt',
    '/linked/secret.txt',
    '/linked/',
    '/.hidden',
    '/small.txt%00.html',
    '/small.txt/',
    '/%',
    '//secret.txt',
    '/nothing',
  ];
  for (const path of paths) {
    for (const method of ['GET', 'HEAD']) {
      const { status, body } = await get(port, path, {}, method);
      assert.ok(status >= 400 && status < 500, `${method} ${path}: ${status}`);
      assert.ok(!String(body).includes('secret') && !String(body).includes('hidden'), path);
    }
  }
  assert.equal(String((await get(port, '/within.txt')).body), 'small');
  for (const headers of [
    { Range: 'bytes=99999-' },
    { 'If-Modified-Since': new Date(Date.now() + 86_400_000).toUTCString() },
    { 'If-None-Match': '*' },
  ]) {
    const { status, headers: told } = await get(port, '/link.txt', { ...headers });
    assert.equal(status, 404, JSON.stringify(headers));
    assert.equal(told['content-range'], undefined);
  }
});

test('a folder has its index, or nothing; without its slash it redirects', async (t) => {
  const { port } = await serveFiles(t);
  assert.equal(String((await get(port, '/')).body), '<h1>here</h1>');
  assert.equal((await get(port, '/bare/')).status, 404);
  const moved = await get(port, '/bare?a=1');
  assert.equal(moved.status, 301);
  assert.equal(moved.headers.location, '/bare/?a=1');
  assert.equal((await get(port, '//bare')).headers.location ?? '', '/bare/');
  assert.equal((await get(port, '/linked')).status, 404); // it leads out of the folder
});

test('folders are listed when enabled, without hidden files', async (t) => {
  const { port } = await serveFiles(t, { listing: true, index: false });
  const page = String((await get(port, '/')).body);
  assert.match(page, /<a href=".\/bare\/">bare\/<\/a>/);
  assert.doesNotMatch(page, /\.\.\//);
  assert.doesNotMatch(page, /hidden/);
  const odd = String((await get(port, '/bare/')).body);
  assert.match(odd, /<a href="\.\/\.\.\/">/);
  const href = /href="(\.\/a[^"]*)"/.exec(odd)?.[1]?.replaceAll('&amp;', '&') ?? '';
  assert.equal(String((await get(port, `/bare/${href.slice(2)}`)).body), 'odd name');
  assert.equal((await get(port, '/linked/')).status, 404);
});

test('only GET and HEAD; as middleware, missing files are left to the next', async (t) => {
  const { port, root } = await serveFiles(t);
  const refused = await get(port, '/small.txt', {}, 'DELETE');
  assert.deepEqual([refused.status, refused.headers.allow], [405, 'GET, HEAD']);
  const files = serveStatic(root);
  const app: RequestListener = (request, response) =>
    files(request, response, () => response.end(`next ${response.getHeaderNames().join()}`));
  const other = await listen(t, createServer(app));
  assert.equal(String((await get(other, '/nothing')).body), 'next ');
  assert.equal(String((await get(other, '/link.txt')).body), 'next ');
  assert.equal(String((await get(other, '/small.txt', {}, 'POST')).body), 'next ');
});

test('over TLS, and behind a middleware that reads the body, files come whole', async (t) => {
  const { large, root } = await serveFiles(t);
  const files = serveStatic(root);
  const secure = createSecure({ cert, key }, (request, response) => files(request, response));
  const port = await listen(t, secure);
  const { body } = await get(port, '/large.bin', {}, 'GET', httpsRequest as typeof httpRequest);
  assert.ok(body.equals(large));
  let seen = 0;
  const watched = createServer((request, response) => {
    const write = response.write.bind(response);
    response.write = ((chunk: Buffer) => {
      seen += chunk.length;
      return write(chunk);
    }) as typeof response.write;
    files(request, response);
  });
  const got = await get(await listen(t, watched), '/large.bin');
  assert.ok(got.body.equals(large));
  assert.equal(seen, large.length);
});

test('a slow client gets all of it, and one that leaves costs no descriptor', async (t) => {
  const { port, large } = await serveFiles(t);
  const before = openDescriptors().length;
  const slow = connect(port);
  slow.write('GET /huge.bin HTTP/1.0\r\n\r\n');
  await new Promise((resolve) => slow.once('readable', resolve));
  // Other clients are served meanwhile: the server has sent what fits, and waits for room.
  for (let turn = 0; turn < 5; turn += 1) {
    assert.ok((await get(port, '/large.bin')).body.equals(large));
  }
  const all = await buffer(slow);
  assert.equal(all.length - all.indexOf('\r\n\r\n') - 4, hugeBytes);
  await waitFor(() => openDescriptors().length <= before);
  for (let round = 0; round < 5; round += 1) {
    const leaving = connect(port);
    leaving.on('error', () => {});
    leaving.write('GET /huge.bin HTTP/1.0\r\n\r\n');
    await new Promise((resolve) => leaving.once('readable', resolve));
    assert.ok(openDescriptors().length > before);
    leaving.destroy();
  }
  await waitFor(() => openDescriptors().length <= before);
});

test('a file that becomes shorter meanwhile ends the connection, not the server', async (t) => {
  const { port, root } = await serveFiles(t);
  const client = connect(port);
  client.write('GET /huge.bin HTTP/1.0\r\n\r\n');
  await new Promise((resolve) => client.once('readable', resolve));
  truncateSync(join(root, 'huge.bin'), 1000);
  let got = 0;
  client.on('data', (piece: Buffer) => {
    got += piece.length;
  });
  client.on('error', () => {});
  await new Promise((resolve) => client.once('close', resolve));
  assert.ok(got < hugeBytes, `${got} bytes`);
  assert.equal(String((await get(port, '/small.txt')).body), 'small');
});

test('without a descriptor left a file is a failure of the server, and comes later', async (t) => {
  const { port } = await serveFiles(t);
  const error = Object.assign(new Error('too many open files'), { code: 'EMFILE' });
  const opened = t.mock.method(fs, 'openSync', () => {
    throw error;
  });
  syncBuiltinESMExports();
  const { status } = await get(port, '/small.txt');
  opened.mock.restore();
  syncBuiltinESMExports();
  assert.ok(opened.mock.callCount() > 0);
  assert.equal(status, 500);
  assert.equal((await get(port, '/small.txt')).status, 200);
});

test('a folder that is not there, or wrong options, are refused at once', () => {
  assert.throws(() => serveStatic('/no/such/folder'), { code: 'OPTION_INVALID' });
  assert.throws(() => serveStatic('/', { maxAgeMs: -1 }), { code: 'OPTION_INVALID' });
  assert.throws(() => serveStatic('/', Object({ maxage: 1 })), { code: 'OPTION_INVALID' });
});

test('over HTTP/2, also without TLS, a large file arrives whole', async (t) => {
  const root = folder(t);
  const content = randomBytes(2 ** 20);
  writeFileSync(join(root, 'large.bin'), content);
  const files: unknown = serveStatic(root);
  const port = await listen(t, createHttp2(Object(files)));
  const session = connectHttp2(`http://127.0.0.1:${port}`);
  t.after(() => session.close());
  assert.ok(content.equals(await buffer(session.request({ ':path': '/large.bin' }))));
});
