// The thread that answers requests for files: what clients get is the same, byte for byte, as from the loops.
// Long (over 400 lines), because each answer of the thread is compared with that of a loop of one server.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  mkdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { Agent, get } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { foldersApp } from '../../src/http-apps/index.js';
import { type ServeOptions, serve } from '../../src/serve/index.js';
import { command } from '../cli/serving.js';
import { childrenOf, openDescriptors, waitFor } from '../support/index.js';
import { folder, skip } from './served.js';

const deadlineMs = 20_000;

/** A folder whose files were changed long ago. */
function site(t: TestContext): string {
  const root = join(folder(t), 'root');
  mkdirSync(join(root, 'inner'), { recursive: true });
  const files = {
    'index.html': '<h1>here</h1>',
    'small.txt': 'small',
    'empty.txt': '',
    '.hidden': 'hidden',
    'a b&c.txt': 'odd',
    'ünï.txt': 'names',
    'large.bin': randomBytes(300_017),
    'app.js': 'plain();',
    'app.js.gz': gzipSync('plain();'),
    'app.js.br': 'brotli',
    'inner/index.html': 'inner',
  };
  for (const [name, bytes] of Object.entries(files)) write(root, name, bytes);
  symlinkSync(join(root, 'small.txt'), join(root, 'within.txt'));
  symlinkSync('/etc/passwd', join(root, 'out.txt'));
  return root;
}

/** Writes a file that is older than the thread's distrust. */
function write(root: string, name: string, bytes: string | Buffer): void {
  writeFileSync(join(root, name), bytes);
  utimesSync(join(root, name), 1_700_000_000, 1_700_000_000);
}

async function open(t: TestContext, root: string, fileThread: boolean, options?: ServeOptions) {
  const args = [JSON.stringify({ static: root, fileThread })];
  const server = await serve(foldersApp, { args, processes: 1, loops: 1, port: 0, ...options });
  t.after(() => server.close());
  const [address] = server.addresses;
  assert.ok(typeof address === 'object' && 'port' in address);
  const { port } = address;
  /** Requests so far, and connections that loops got. */
  const counts = () => {
    const rows = server.status();
    const sum = (name: 'requests' | 'connections') =>
      rows.reduce((total, row) => total + row[name], 0);
    return { requests: sum('requests'), connections: sum('connections') };
  };
  return { server, port, counts };
}

/** Everything that comes back for these bytes; the connection is closed by a request that says so. */
function exchange(port: number, ...requests: readonly string[]): Promise<string> {
  return exchangeIn(port, [requests.join('')]);
}

/** Sends each part when something has come back for the one before; resolves to all that has come. */
async function exchangeIn(port: number, parts: readonly string[]): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  const chunks: Buffer[] = [];
  socket.on('data', (chunk) => chunks.push(chunk));
  const ended = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  socket.on('error', () => {}); // a reset ends it, too
  let countAtWrite = -1;
  for (const part of parts) {
    // Several answers may be one chunk.
    await waitFor(() => chunks.length > countAtWrite || socket.destroyed, deadlineMs);
    countAtWrite = chunks.length;
    socket.write(part, 'latin1');
  }
  await ended;
  return Buffer.concat(chunks)
    .toString('latin1')
    .replaceAll(/\r\nDate: [^\r]*/g, '');
}

const head = (target: string, fields = '', method = 'GET') =>
  `${method} ${target} HTTP/1.1\r\nHost: a\r\n${fields}\r\n`;
/** A request after which the server closes. */
const last = head('/nothing', 'Connection: close\r\n');

const targets = [
  ...['/', '/index.html', '/small.txt', '/small.txt?a=b', '/empty.txt', '/large.bin', '/app.js'],
  ...['/inner/', '/inner', '/a%20b&c.txt', '/%C3%BCn%C3%AF.txt', '/within.txt', '/out.txt'],
  ...['/.hidden', '/none', '/small.txt/', '//small.txt', '/inner/../small.txt', '/%2e%2e/x'],
  ...['/small.txt%00', '/%', '/smal%6c.txt', '/small.txt#f', '/large.bin?'],
];

for (const target of targets) {
  test(`${target} is the same from thread and loop, with every field`, { skip }, async (t) => {
    const root = site(t);
    const [thread, loop] = [await open(t, root, true), await open(t, root, false)];
    const whole = await exchange(loop.port, head(target), last);
    const tag = /\r\nETag: ([^\r]*)/.exec(whole)?.[1] ?? '"none"';
    const modified = /\r\nLast-Modified: ([^\r]*)/.exec(whole)?.[1] ?? 'never';
    const fields = [
      ...['', 'Accept-Encoding: gzip\r\n', 'Accept-Encoding: br, gzip\r\n', 'Accept: */*\r\n'],
      ...['Range: bytes=0-1\r\n', 'Range: bytes=2-\r\n', 'Range: bytes=-3\r\n'],
      ...['Range: bytes=9999999-\r\n', 'Range: bytes=0-0,2-2\r\n', 'Range: bytes=3-1\r\n'],
      ...[`If-None-Match: ${tag}\r\n`, 'If-None-Match: "other"\r\n', 'If-None-Match: *\r\n'],
      ...[`If-None-Match: W/${tag}\r\n`, `If-None-Match: "x", ${tag}\r\n`],
      ...[`If-Modified-Since: ${modified}\r\n`, 'If-Modified-Since: nonsense\r\n'],
      `If-None-Match: ${tag}\r\nIf-Modified-Since: ${modified}\r\n`,
      `If-None-Match: "other"\r\nIf-Modified-Since: ${modified}\r\n`,
      `If-None-Match: ${tag}\r\nCache-Control: no-cache\r\n`,
      ...[`If-Match: ${tag}\r\n`, 'If-Match: "other"\r\n', `If-Unmodified-Since: ${modified}\r\n`],
      `Range: bytes=1-2\r\nIf-Range: ${tag}\r\n`,
      'Range: bytes=1-2\r\nIf-Range: "other"\r\n',
    ];
    for (const field of fields) {
      for (const method of ['GET', 'HEAD']) {
        // The first one fills the cache, as far as it may.
        const requests = [head(target, field), head(target, field, method), last];
        const expected = await exchange(loop.port, ...requests);
        await exchange(thread.port, head(target), last);
        assert.equal(await exchange(thread.port, ...requests), expected, `${method} ${field}`);
      }
    }
  });
}

test('requests after the first are answered by no loop', { skip }, async (t) => {
  const { port, counts } = await open(t, site(t), true);
  // A client may have its answer before that is counted.
  const counted = (requests: number) =>
    waitFor(() => counts().requests >= requests && counts(), deadlineMs);
  let requests = 0;
  for (const target of ['/small.txt', '/large.bin']) {
    await exchange(port, head(target), last);
    const before = await counted(requests + 2);
    await exchange(port, ...Array.from({ length: 50 }, () => head(target)), last);
    const after = await counted(before.requests + 51);
    assert.equal(after.requests - before.requests, 51);
    assert.equal(after.connections - before.connections, 1, 'for the last request alone');
    requests = after.requests;
  }
});

test('the status has what the thread holds and sends', { skip }, async (t) => {
  const root = site(t);
  const { server, port } = await open(t, root, true, { loops: 2 });
  const first = () => server.status()[0];
  await exchange(port, head('/large.bin'), last);
  const sockets = Array.from({ length: 3 }, () => connect(port, '127.0.0.1'));
  t.after(() => sockets.map((socket) => socket.destroy()));
  for (const socket of sockets) socket.resume().write(head('/large.bin'));
  await waitFor(() => (first()?.openConnections ?? 0) === 3, deadlineMs);
  const isSent = () => (first()?.bytesWritten ?? 0) >= 3 * 300_000;
  await waitFor(() => isSent() && (first()?.requests ?? 0) >= 3, deadlineMs);
  for (const socket of sockets) socket.destroy();
  await waitFor(() => server.status().every((row) => row.openConnections === 0), deadlineMs);
});

test('connections of the thread count against maxConnections, of all loops together', {
  skip,
}, async (t) => {
  const { server, port } = await open(t, site(t), true, { loops: 2, maxConnections: 2 });
  await exchange(port, head('/small.txt'), last);
  let answered = 0;
  const sockets = Array.from({ length: 6 }, () => {
    const socket = connect(port, '127.0.0.1');
    socket.once('data', () => {
      answered += 1;
    });
    socket.write(head('/small.txt'));
    return socket;
  });
  t.after(() => sockets.map((socket) => socket.destroy()));
  const held = () => server.status().reduce((sum, row) => sum + row.openConnections, 0);
  await waitFor(() => answered === 4, deadlineMs);
  assert.ok(held() <= 4);
  for (const count of [5, 6]) {
    const [gone] = sockets.filter((socket) => socket.bytesRead > 0 && !socket.destroyed);
    gone?.destroy();
    await waitFor(() => answered === count, deadlineMs);
    assert.ok(held() <= 4);
  }
});

test('a process is replaced after so many requests, also when the thread answers them', {
  skip,
}, async (t) => {
  const { server, port } = await open(t, site(t), true, { maxRequestsPerProcess: 200 });
  const [pid] = server.pids;
  await exchange(port, ...Array.from({ length: 250 }, () => head('/small.txt')), last);
  await waitFor(() => !server.pids.includes(pid ?? 0), deadlineMs);
});

test('a connection comes back to the thread after a loop has answered', { skip }, async (t) => {
  const { port, counts } = await open(t, site(t), true);
  const socket = connect(port, '127.0.0.1');
  t.after(() => socket.destroy());
  let bytes = '';
  socket.on('data', (chunk) => {
    bytes += chunk.toString('latin1');
  });
  for (const [at, target] of ['/small.txt', '/none', '/small.txt', '/none'].entries()) {
    socket.write(head(target));
    await waitFor(() => (bytes.match(/HTTP\/1.1 /g) ?? []).length === at + 1, deadlineMs);
  }
  assert.deepEqual(
    bytes.match(/HTTP\/1.1 \d+/g),
    ['200', '404', '200', '404'].map((s) => `HTTP/1.1 ${s}`),
  );
  assert.equal(counts().connections, 3, 'the third request went to no loop');
});

function fetchWith(
  agent: Agent,
  port: number,
): Promise<{ status: number | undefined; body: string }> {
  return new Promise((resolve, reject) => {
    const asked = get({ agent, port, path: '/small.txt' }, async (response) => {
      try {
        resolve({ status: response.statusCode, body: await text(response) });
      } catch (error) {
        reject(error);
      }
    });
    asked.on('error', reject);
  });
}

const odd: readonly string[] = [
  '\r\n',
  'GET /small.txt HTTP/1.0\r\n\r\n',
  'GET /small.txt HTTP/1.1\r\n\r\n',
  'GET /small.txt HTTP/1.1\nHost: a\n\n',
  'GET  /small.txt HTTP/1.1\r\nHost: a\r\n\r\n',
  'GET /small.txt HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n',
  'GET http://a/small.txt HTTP/1.1\r\nHost: a\r\n\r\n',
  `${head('/small.txt', 'Content-Length: 5\r\n')}GET /`,
  head('/small.txt', 'Content-Length: 0\r\n'),
  head('/small.txt', 'Content-Length: 0\r\nContent-Length: 5\r\n'),
  head('/small.txt', 'Content-Length : 5\r\n'),
  `${head('/small.txt', 'Transfer-Encoding: chunked\r\n')}5\r\nGET /\r\n0\r\n\r\n`,
  `${head('/small.txt', 'Transfer-Encoding: chunked\r\nContent-Length: 4\r\n')}0\r\n\r\n`,
  head('/small.txt', 'Transfer-Encoding: \x0bchunked\r\n'),
  head('/small.txt', 'X: 1\r\n folded\r\n'),
  head('/small.txt', ' X: 1\r\n'),
  head('/small.txt', 'X: \x00\r\n'),
  head('/small.txt', 'X: 1\rY: 2\r\n'),
  head('/small.txt', 'X: 1\nContent-Length: 5\r\n'),
  head('/small.txt', 'Expect: 100-continue\r\n'),
  head('/small.txt', 'Upgrade: websocket\r\nConnection: upgrade\r\n'),
  head('/small.txt', `X: ${'x'.repeat(20_000)}\r\n`),
  head('/small.txt', 'X: 1\r\n'.repeat(100)),
  head('/small.txt', '', 'POST'),
  head('/small.txt', '', 'get'),
  head('*', '', 'OPTIONS'),
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
];

/** Ways in which a connection gets to its answer; each has to find the same requests in the same bytes. */
const ways: readonly (ServeOptions & { readonly thread: boolean })[] = [
  { thread: true },
  { thread: false, rescue: true },
  ...(['address', { cookie: 'a' }, { header: 'x' }, { query: 'a' }] as const).flatMap((sticky) => [
    { thread: false, sticky },
    { thread: true, sticky },
  ]),
];

test('a malformed or smuggled request has the same answers in each way as from a loop alone', {
  skip,
}, async (t) => {
  const root = site(t);
  const cases = odd.flatMap((request) => [[request + last], [head('/small.txt'), request + last]]);
  const answers = (port: number) => Promise.all(cases.map((parts) => exchangeIn(port, parts)));
  const expected = answers((await open(t, root, false, { rescue: false })).port);
  // All at once: some answers come when a connection has been idle for seconds.
  const found = ways.map(async ({ thread, ...options }) => {
    const { port } = await open(t, root, thread, { loops: 2, ...options });
    await exchange(port, head('/small.txt'), last);
    return { way: { thread, ...options }, actual: await answers(port) };
  });
  for (const { way, actual } of await Promise.all(found)) {
    for (const [at, answer] of (await expected).entries()) {
      const withoutCookie = actual[at]?.replaceAll(/\r\nSet-Cookie: [^\r]*/gi, '');
      assert.equal(withoutCookie, answer, JSON.stringify([way, cases[at]]));
    }
  }
});

test('every change of a file is seen by the next request', { skip }, async (t) => {
  const root = site(t);
  const { port } = await open(t, root, true);
  const body = async (target = '/small.txt', fields = ''): Promise<string> => {
    const all = await exchange(port, head(target, fields), last);
    return all.split('HTTP/1.1 404')[0]?.split('\r\n\r\n')[1] ?? '';
  };
  assert.deepEqual([await body(), await body()], ['small', 'small']);
  const path = join(root, 'small.txt');
  writeFileSync(path, 'other');
  assert.equal(await body(), 'other');
  write(root, 'small.txt', 'first');
  assert.deepEqual([await body(), await body()], ['first', 'first']);
  writeFileSync(join(root, 'new'), 'second');
  renameSync(join(root, 'new'), path);
  assert.equal(await body(), 'second');
  truncateSync(path, 3);
  assert.equal(await body(), 'sec');
  rmSync(path);
  assert.equal(await body(), '');
  write(root, 'app.css', 'plain');
  const gzip = 'Accept-Encoding: gzip\r\n';
  assert.deepEqual(
    [await body('/app.css', gzip), await body('/app.css', gzip)],
    ['plain', 'plain'],
  );
  write(root, 'app.css.gz', 'packed');
  assert.equal(await body('/app.css', gzip), 'packed');
});

test('more files than the cache has room for are all right', { skip }, async (t) => {
  const root = site(t);
  mkdirSync(join(root, 'many'));
  const names = Array.from({ length: 3000 }, (_, index) => `many/${index}.txt`);
  for (const name of names) write(root, name, name);
  const { port } = await open(t, root, true);
  for (let round = 0; round < 2; round += 1) {
    const all = await exchange(port, ...names.map((name) => head(`/${name}`)), last);
    const bodies = all.match(/\r\n\r\nmany\/\d+\.txt/g) ?? [];
    assert.deepEqual(
      bodies.map((text) => text.slice(4)),
      names,
    );
  }
});

test('of a hundred thousand files each is itself, and few stay open', { skip }, async (t) => {
  const root = site(t);
  const [folders, filesOfEach, batch, asked] = [100, 1000, 200, 5];
  for (let at = 0; at < folders; at += 1) {
    mkdirSync(join(root, `${at}`));
    for (let file = 0; file < filesOfEach; file += 1) write(root, `${at}/${file}`, `${at}-${file}`);
  }
  const { server, port } = await open(t, root, true);
  const client = async (first: number): Promise<void> => {
    const names: string[] = [];
    for (let at = first; at < folders * filesOfEach; at += clients * asked)
      names.push(`${at % folders}/${Math.floor(at / folders)}`);
    // The second time from the cache.
    const batches = Array.from({ length: Math.ceil(names.length / batch) }, (_, at) =>
      names.slice(at * batch, (at + 1) * batch),
    ).flatMap((part) => [part, part]);
    const parts = batches.map((part) => part.map((name) => head(`/${name}`)).join(''));
    const all = await exchangeIn(port, [...parts, last]);
    assert.deepEqual(
      (all.match(/\r\n\r\n\d+-\d+/g) ?? []).map((body) => body.slice(4).replace('-', '/')),
      batches.flat(),
    );
  };
  const clients = 4;
  await Promise.all(Array.from({ length: clients }, (_, at) => client(at * asked)));
  const [pid] = server.pids;
  const held = openDescriptors(pid ?? 0).filter((target) => target.startsWith(root));
  assert.ok(held.length <= 1024, `${held.length}`);
});

for (const change of ['removed', 'replaced'] as const) {
  test(`a file that is ${change} while it is sent comes whole, with its old bytes`, {
    skip,
  }, async (t) => {
    const root = site(t);
    const old = randomBytes(20_000_000); // more than the buffers of a socket
    write(root, 'big.bin', old);
    const { port, counts } = await open(t, root, true);
    await exchange(port, head('/big.bin'), last); // fills the cache
    const { connections } = counts();
    const socket = connect(port, '127.0.0.1');
    t.after(() => socket.destroy());
    socket.write(head('/big.bin'));
    await once(socket, 'readable');
    if (change === 'removed') rmSync(join(root, 'big.bin'));
    else {
      write(root, 'new.bin', 'new');
      renameSync(join(root, 'new.bin'), join(root, 'big.bin'));
    }
    const chunks: Buffer[] = [];
    socket.on('data', (chunk) => chunks.push(chunk));
    const hasAll = () => {
      const at = chunks[0]?.indexOf('\r\n\r\n') ?? 0;
      return chunks.reduce((sum, { length }) => sum + length, 0) >= at + 4 + old.length;
    };
    await waitFor(hasAll, deadlineMs);
    const all = Buffer.concat(chunks);
    assert.ok(all.subarray(all.indexOf('\r\n\r\n') + 4).equals(old));
    assert.equal(counts().connections, connections, 'the thread has sent it');
    const next = await exchange(port, head('/big.bin'), last);
    assert.match(next, change === 'removed' ? /^HTTP\/1.1 404 / : /^HTTP\/1.1 200 [^]*\r\n\r\nnew/);
  });
}

test('reloads lose no request while the thread answers', { skip }, async (t) => {
  const root = site(t);
  const { server, port } = await open(t, root, true, { processes: 2 });
  let [answers, isOver] = [0, false];
  /** Sends one request after the other over kept connections, and opens one where the server has closed. */
  const client = async (): Promise<void> => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    while (!isOver) {
      const response = await fetchWith(agent, port);
      assert.deepEqual(response, { status: 200, body: 'small' });
      answers += 1;
    }
    agent.destroy();
  };
  const clients = Array.from({ length: 8 }, client);
  for (let reload = 0; reload < 5; reload += 1) {
    const before = answers;
    await server.reload();
    await waitFor(() => answers > before + 100, deadlineMs);
  }
  isOver = true;
  await Promise.all(clients);
});

test('with few descriptors every file is sent', { skip }, async (t) => {
  const root = site(t);
  const names = Array.from({ length: 300 }, (_, index) => `large-${index}.bin`);
  for (const name of names) write(root, name, Buffer.alloc(40_000, 7));
  const text = `ulimit -n 200; exec "$0" "$1" serve --static "$2" -P 1 -L 1 --host 127.0.0.1 --port 0`;
  const child = spawn('sh', ['-c', text, process.execPath, command, root], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => child.kill('SIGKILL'));
  let printed = '';
  child.stdout.on('data', (chunk) => {
    printed += chunk;
  });
  await waitFor(() => printed.includes('\n'), deadlineMs);
  const port = Number(/:(\d+)\n/.exec(printed)?.[1]);
  const sent = async (part: readonly string[]): Promise<number> => {
    const all = await exchange(port, ...part.map((name) => head(`/${name}`)), last);
    return all.match(/HTTP\/1.1 200 OK/g)?.length ?? 0;
  };
  assert.equal(await sent(names), names.length);
  const open = childrenOf(child.pid ?? 0).map(({ pid }) =>
    openDescriptors(pid).filter((target) => target.startsWith(root)),
  );
  assert.ok(Math.max(...open.map(({ length }) => length)) <= 200 / 8, 'most are for clients');
  child.kill('SIGTERM');
  await once(child, 'exit');
});
