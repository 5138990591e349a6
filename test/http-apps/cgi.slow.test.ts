// CGI programs over HTTP: their variables, their responses, and programs that misbehave.
// Long (over 400 lines), because each kind of program is a test.

import assert from 'node:assert/strict';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { Agent, createServer, type IncomingHttpHeaders, request } from 'node:http';
import { connect as connectHttp2, createServer as createHttp2 } from 'node:http2';
import { createRequire } from 'node:module';
import { type AddressInfo, connect } from 'node:net';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer, text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { type CgiOptions, serveCgi } from '../../src/http-apps/cgi/cgi.js';
import { metaVariables } from '../../src/http-apps/cgi/environment.js';
import { CgiHeadReader, CgiOutputError } from '../../src/http-apps/cgi/head.js';
import { nativeBinding } from '../../src/native.js';
import { folder } from '../serve/served.js';
import { childrenOf, isRunning, openDescriptors, waitFor } from '../support/index.js';

const skip = nativeBinding() === undefined && 'programs are started by the native binary';

interface Got {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

const programs: Record<string, string> = {
  'hello.sh': `echo 'Content-Type: text/plain'; echo 'X-Two: words here'; echo; echo "hello $QUERY_STRING"`,
  'env.sh': `echo 'Content-Type: text/plain'; echo; env | sort`,
  'cat.sh': `echo 'Content-Type: application/octet-stream'; echo; cat`,
  'status.sh': `printf 'Status: 404 Not here\\r\\nContent-Type: text/plain\\r\\n\\r\\ngone'`,
  'moved.sh': `echo 'Location: http://elsewhere/'; echo`,
  'cookies.sh': `echo 'Set-Cookie: a=1'; echo 'Set-Cookie: b=2'; echo 'Content-Type: text/plain'; echo`,
  'nothing.sh': `exit 3`,
  'chatter.sh': `echo 'no header at all'; echo; echo body`,
  'endless-head.sh': `while :; do echo 'X-More: and more and more and more and more'; done`,
  'hang.sh': `echo $$ > "$LOG"; sleep 1000 & sleep 1000`,
  'stop.sh': `echo 'Content-Type: text/plain'; echo; echo begun; echo $$ > "$LOG"; sleep 1000`,
  'crash.sh': `echo 'Content-Type: text/plain'; echo; echo begun; kill -9 $$`,
  'deaf.sh': `echo 'Content-Type: text/plain'; echo; exec 0<&-; echo heard nothing`,
  'patient.sh': `echo 'Content-Type: text/plain'; echo; echo heard nothing`,
  'endless.sh': `echo $$ > "$LOG"; echo 'Content-Type: text/plain'; echo; exec cat /dev/zero`,
  'behind.sh': `echo $$ > "$LOG"; echo 'Content-Type: text/plain'; echo; echo done; exec 1>&-; sleep 1000`,
  'huge.sh': `echo 'Content-Type: application/octet-stream'; echo; head -c 1073741824 /dev/zero`,
  'long.sh': `echo 'Content-Type: text/plain'; echo 'Content-Length: 5'; echo; echo 'hello and HTTP/1.1 200 OK'`,
  'short.sh': `echo 'Content-Type: text/plain'; echo 'Content-Length: 500'; echo; echo hello`,
  'lengths.sh': `echo 'Content-Length: 5'; echo 'Content-Length: 6'; echo; echo hello`,
  'trailer.sh': `echo 'Trailer: X-Late'; echo 'Content-Length: 6'; echo; echo hello`,
  'tea.sh': `echo 'Status: 418 Tea, short'; echo; echo pot`,
  'args.sh': `echo 'Content-Type: text/plain'; echo; for each; do echo "[$each]"; done`,
  'nph-raw.sh': `printf 'HTTP/1.1 299 Own words\\r\\nX-Query: %s\\r\\n\\r\\nraw ' "$QUERY_STRING"; cat`,
  'nph-interim.sh': `printf 'HTTP/1.1 103 Early Hints\\r\\nLink: </a>\\r\\n\\r\\nHTTP/1.1 200 OK\\r\\n\\r\\nlast'`,
  'nph-crash.sh': `printf 'HTTP/1.1 200 OK\\r\\nContent-Length: 9\\r\\n\\r\\n'; kill -9 $$`,
  'nph-nothing.sh': `exit 0`,
  'nph-hang.sh': `echo $$ > "$LOG"; printf 'HTTP/1.1 200 OK\\r\\n\\r\\n'; sleep 1000`,
  'to-args.sh': `cat >&2; echo 'Location: /args.sh?one+two'; echo; echo lost`,
  'to-cat.sh': `echo 'Location: /cat.sh'; echo`,
  'to-env.sh': `echo 'Location: /env.sh/rest?q=2'; echo`,
  'to-none.sh': `echo 'Location: /none.sh'; echo`,
  'to-itself.sh': `echo x >> "$LOG"; echo 'Location: /to-itself.sh'; echo`,
  'to-outside.sh': `echo 'Location: /outside/page?a=1'; echo`,
  'to-place.sh': `echo 'Location: /args.sh#place'; echo`,
  'to-other.sh': `echo 'Location: //other/args.sh'; echo`,
  'found.sh': `echo 'Status: 303 See'; echo 'Location: /args.sh'; echo`,
  'to-crash.sh': `echo 'Location: /args.sh'; echo; kill -9 $$`,
  '.hidden.sh': `echo 'Content-Type: text/plain'; echo; echo hidden`,
  'unchanged.sh': `echo 'Status: 304 Not Modified'; echo 'Content-Length: 500'; echo`,
  'slow.sh': `echo 'Content-Type: text/plain'; echo; echo one; while [ ! -e "$GO" ]; do sleep 0.05; done; echo two`,
};

async function serveScripts(t: TestContext, options: CgiOptions = {}) {
  const root = folder(t);
  for (const [name, text] of Object.entries(programs)) {
    writeFileSync(join(root, name), `#!/bin/sh\n${text.replaceAll('\\\\', '\\')}\n`);
    chmodSync(join(root, name), 0o755);
  }
  writeFileSync(join(root, 'data.txt'), 'no program');
  mkdirSync(join(root, 'inner'));
  symlinkSync('/bin/sh', join(root, 'shell'));
  const log = join(root, 'log');
  const go = join(root, 'go');
  const listener = serveCgi(root, { env: { LOG: log, GO: go }, ...options });
  const server = createServer((asked, response) => listener(asked, response));
  t.after(() => server.close());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { root, log, go, port: (server.address() as AddressInfo).port };
}

function get(port: number, path: string, options: object = {}, body?: Readable): Promise<Got> {
  return new Promise((resolve, reject) => {
    const asked = request(
      { port, path, host: '127.0.0.1', agent: false, ...options },
      (response) => {
        const { statusCode: status = 0, headers } = response;
        buffer(response).then((bytes) => resolve({ status, headers, body: String(bytes) }), reject);
      },
    );
    asked.on('error', reject);
    if (body === undefined) asked.end();
    else pipeline(body, asked).catch(reject);
  });
}

/** All bytes of the answer to one request. */
async function exchange(port: number, path: string, body = ''): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  const head = `${body === '' ? 'GET' : 'POST'} ${path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n`;
  socket.write(`${head}Content-Length: ${body.length}\r\n\r\n${body}`);
  return String(await buffer(socket));
}

test('a program answers with its headers, status and body', { skip }, async (t) => {
  const { port } = await serveScripts(t);
  const hello = await get(port, '/hello.sh?a=1&b=%20');
  assert.equal(hello.status, 200);
  assert.equal(hello.headers['x-two'], 'words here');
  assert.equal(hello.body, 'hello a=1&b=%20\n');
  const gone = await get(port, '/status.sh');
  assert.deepEqual([gone.status, gone.body], [404, 'gone']);
  const moved = await get(port, '/moved.sh');
  assert.deepEqual([moved.status, moved.headers.location], [302, 'http://elsewhere/']);
  assert.deepEqual((await get(port, '/cookies.sh')).headers['set-cookie'], ['a=1', 'b=2']);
  assert.equal((await get(port, '/hello.sh', { method: 'HEAD' })).body, '');
});

test('a program gets the variables of RFC 3875, and none of this process', { skip }, async (t) => {
  process.env['SECRET_OF_THE_SERVER'] = 'secret';
  t.after(() => delete process.env['SECRET_OF_THE_SERVER']);
  const { port, root } = await serveScripts(t);
  const headers = { 'X-Odd': 'a, b', Proxy: 'evil:1', Authorization: 'Basic x', Host: 'here:81' };
  const { body } = await get(port, '/env.sh/more/of%20it?q=1', { headers });
  const lines = body.split('\n');
  for (const line of [
    'GATEWAY_INTERFACE=CGI/1.1',
    'SERVER_PROTOCOL=HTTP/1.1',
    'SERVER_NAME=here',
    `SERVER_PORT=${port}`,
    'REQUEST_METHOD=GET',
    'QUERY_STRING=q=1',
    'SCRIPT_NAME=/env.sh',
    `SCRIPT_FILENAME=${root}/env.sh`,
    'PATH_INFO=/more/of it',
    `PATH_TRANSLATED=${root}/more/of it`,
    'REMOTE_ADDR=127.0.0.1',
    'HTTP_X_ODD=a, b',
  ]) {
    assert.ok(lines.includes(line), `${line} in ${body}`);
  }
  assert.doesNotMatch(body, /evil|HTTP_PROXY|HTTP_AUTHORIZATION|secret/);
});

test('the server and the client are named as Apache names them', { skip }, async (t) => {
  const { port, root } = await serveScripts(t);
  const { body } = await get(port, '/env.sh/a%20b?q=%20');
  for (const line of [
    'REQUEST_URI=/env.sh/a%20b?q=%20',
    'SERVER_ADDR=127.0.0.1',
    `DOCUMENT_ROOT=${root}`,
  ]) {
    assert.ok(body.split('\n').includes(line), `${line} in ${body}`);
  }
  assert.match(body, /^REMOTE_PORT=\d+$/m);
  const documentRoot = folder(t);
  const other = await serveScripts(t, { documentRoot });
  const there = (await get(other.port, '/env.sh/file')).body;
  assert.match(there, new RegExp(`^DOCUMENT_ROOT=${documentRoot}$`, 'm'));
  assert.match(there, new RegExp(`^PATH_TRANSLATED=${documentRoot}/file$`, 'm'));
});

test('every form of a request target names the same program', { skip }, async (t) => {
  const { port } = await serveScripts(t);
  for (const [target, status, host] of [
    ['/env.sh?q=1', 200, 'here:81'],
    ['http://There.example/env.sh?q=1', 200, 'There.example'],
    ['HTTP://there:82/env.sh?q=1', 200, 'there:82'],
    ['http://user@there/env.sh?q=1', 400, ''],
    ['http:///env.sh?q=1', 400, ''],
    ['http://there', 404, ''],
    ['*', 404, ''],
  ] as const) {
    const { status: got, body } = await get(port, target, { headers: { Host: 'here:81' } });
    assert.equal(got, status, target);
    if (status !== 200) continue;
    const lines = body.split('\n');
    const name = host.replace(/:.*/, '');
    for (const line of [
      `HTTP_HOST=${host}`,
      `SERVER_NAME=${name}`,
      'QUERY_STRING=q=1',
      'REQUEST_URI=/env.sh?q=1',
      'SCRIPT_NAME=/env.sh',
    ]) {
      assert.ok(lines.includes(line), `${target}: ${line} in ${body}`);
    }
  }
});

test("the reason of a status is the program's", { skip }, async (t) => {
  const { port } = await serveScripts(t);
  assert.match(await exchange(port, '/tea.sh'), /^HTTP\/1.1 418 Tea, short\r\n/);
  assert.match(await exchange(port, '/status.sh'), /^HTTP\/1.1 404 Not here\r\n/);
  assert.match(await exchange(port, '/nothing.sh'), /^HTTP\/1.1 502 Bad Gateway\r\n/);
});

test('a query without an equals sign is the words of a search', { skip }, async (t) => {
  const { port } = await serveScripts(t);
  for (const [query, words] of [
    ['a+b', '[a]\n[b]\n'],
    ['a%20b+%24HOME', '[a b]\n[$HOME]\n'],
    ['a%3Db', '[a=b]\n'],
    ['a++b', '[a]\n[]\n[b]\n'],
    ['a=b+c', ''],
    ['', ''],
    ['-s', ''],
    ['a+%2Ds', ''],
    ['%ff', ''],
    ['a%00b', ''],
  ] as const) {
    assert.equal((await get(port, `/args.sh?${query}`)).body, words, query);
  }
  assert.equal((await get(port, '/args.sh?a+b', { method: 'POST' })).body, '');
});

test('an nph- program writes the whole response, and its end is the end', { skip }, async (t) => {
  const { port, log } = await serveScripts(t, { timeoutMs: 5000 });
  assert.equal(
    await exchange(port, '/nph-raw.sh?q', 'body'),
    'HTTP/1.1 299 Own words\r\nX-Query: q\r\n\r\nraw body',
  );
  assert.match(await exchange(port, '/nph-interim.sh'), /^HTTP\/1.1 103 [^]*200 OK\r\n\r\nlast$/);
  assert.match(await exchange(port, '/nph-nothing.sh'), /^HTTP\/1.1 502 /);
  await exchange(port, '/nph-crash.sh').catch(() => {});
  // Behind a response that is not finished yet.
  const socket = connect(port, '127.0.0.1');
  socket.write(
    'GET /hello.sh?1 HTTP/1.1\r\nHost: a\r\n\r\nGET /nph-raw.sh?2 HTTP/1.1\r\nHost: a\r\n\r\n',
  );
  assert.match(String(await buffer(socket)), /hello 1\n[^]*299 Own words\r\nX-Query: 2/);
  const leaving = connect(port, '127.0.0.1');
  leaving.write('GET /nph-hang.sh HTTP/1.1\r\nHost: a\r\n\r\n');
  await new Promise((resolve) => leaving.once('data', resolve));
  leaving.destroy();
  const pid = Number(readFileSync(log, 'utf8'));
  await waitFor(() => !isRunning(pid));
});

test('a redirect to a path of this server is followed inside', { skip }, async (t) => {
  const { port, log } = await serveScripts(t);
  const words = await get(port, '/to-args.sh', { method: 'POST' }, Readable.from(['body']));
  assert.deepEqual([words.status, words.body], [200, '[one]\n[two]\n']);
  assert.equal(words.headers.location, undefined);
  const posted = await get(port, '/to-cat.sh', { method: 'POST' }, Readable.from(['body']));
  assert.deepEqual([posted.status, posted.body], [200, '']); // no body, though the first has not read it
  const { body } = await get(port, '/to-env.sh?q=1', { headers: { Host: 'here' } });
  for (const line of [
    'REQUEST_METHOD=GET',
    'REQUEST_URI=/env.sh/rest?q=2',
    'SCRIPT_NAME=/env.sh',
    'PATH_INFO=/rest',
    'QUERY_STRING=q=2',
    'HTTP_HOST=here',
  ]) {
    assert.ok(body.split('\n').includes(line), `${line} in ${body}`);
  }
  assert.doesNotMatch(body, /^CONTENT_/m);
  assert.equal((await get(port, '/to-none.sh')).status, 404);
  assert.equal((await get(port, '/to-crash.sh')).status, 502);
  for (const [path, location] of [
    ['/to-place.sh', '/args.sh#place'],
    ['/found.sh', '/args.sh'],
    ['/moved.sh', 'http://elsewhere/'],
  ] as const) {
    assert.equal((await get(port, path)).headers.location, location);
  }
  assert.equal((await get(port, '/to-other.sh')).status, 404); // a path, no other host
  assert.equal((await get(port, '/to-itself.sh')).status, 500);
  assert.equal(readFileSync(log, 'utf8'), 'x\n'.repeat(11));
});

test('a redirect out of the programs goes to the next listener, else to the client', {
  skip,
}, async (t) => {
  const { root } = await serveScripts(t);
  writeFileSync(join(root, 'to-outside.sh'), "#!/bin/sh\necho 'Location: /outside?a=1'; echo\n");
  const programs = serveCgi(root, { prefix: '/cgi-bin/' });
  const server = createServer((asked, response) => {
    if (asked.headers['x-alone'] !== undefined) programs(asked, response);
    else programs(asked, response, () => response.end(`${asked.method} ${asked.url}`));
  });
  t.after(() => server.close());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const path = '/cgi-bin/to-outside.sh';
  assert.equal((await get(port, path, { method: 'POST' })).body, 'GET /outside?a=1');
  const alone = await get(port, path, { headers: { 'X-Alone': '1' } });
  assert.deepEqual([alone.status, alone.headers.location], [302, '/outside?a=1']);
});

test('behind a mount of Express a program is named, and redirects, by its whole path', {
  skip,
}, async (t) => {
  const { root } = await serveScripts(t);
  writeFileSync(join(root, 'to-env.sh'), "#!/bin/sh\necho 'Location: /app/env.sh?q'; echo\n");
  writeFileSync(join(root, 'to-args.sh'), "#!/bin/sh\necho 'Location: /args.sh?q'; echo\n");
  const express = createRequire(import.meta.url)('express'); // it has no types
  const app = express().use('/app', serveCgi(root));
  const server = app.listen(0, '127.0.0.1');
  t.after(() => server.close());
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  for (const path of ['/app/env.sh?q', '/app/to-env.sh', 'http://here/app/env.sh?q']) {
    const { body } = await get(port, path);
    assert.match(body, /^SCRIPT_NAME=\/app\/env.sh$/m, path);
    assert.match(body, /^REQUEST_URI=\/app\/env.sh\?q$/m, path);
  }
  assert.equal((await get(port, '/app/to-args.sh')).headers.location, '/args.sh?q');
});

test('bodies stream both ways', { skip }, async (t) => {
  const { port, go } = await serveScripts(t);
  const pieces = Array.from({ length: 64 }, (_, at) => Buffer.alloc(2 ** 16, at));
  const echoed = await new Promise<Buffer>((resolve, reject) => {
    const asked = request(
      { port, path: '/cat.sh', host: '127.0.0.1', method: 'POST' },
      (response) => {
        buffer(response).then(resolve, reject);
      },
    );
    pipeline(Readable.from(pieces), asked).catch(reject);
  });
  assert.ok(echoed.equals(Buffer.concat(pieces)));
  const times: string[] = [];
  await new Promise<void>((resolve, reject) => {
    request({ port, path: '/slow.sh', host: '127.0.0.1', agent: false }, (response) => {
      response.on('data', (piece: Buffer) => {
        times.push(String(piece));
        writeFileSync(go, '');
      });
      response.on('end', resolve);
      response.on('error', reject);
    }).end();
  });
  assert.deepEqual(times, ['one\n', 'two\n']);
});

test('a gigabyte goes through, and none of it stays', { skip }, async (t) => {
  const { port } = await serveScripts(t);
  const socket = connect(port, '127.0.0.1');
  socket.write('GET /huge.sh HTTP/1.0\r\n\r\n');
  let count = 0;
  let most = 0;
  for await (const piece of socket) {
    count += Buffer.byteLength(piece);
    most = Math.max(most, process.memoryUsage.rss());
  }
  assert.ok(count > 2 ** 30, `${count} bytes`);
  assert.ok(most < 700 * 2 ** 20, `${most} bytes of memory`);
});

test('a program that answers nothing, or no head, is a bad gateway', { skip }, async (t) => {
  const { port } = await serveScripts(t);
  const warnings = warningsOf(t);
  for (const [path, why] of [
    ['/nothing.sh', /nothing\.sh has ended before its head was complete/],
    ['/chatter.sh', /chatter\.sh answers with a wrong head: ".*" is no header line/],
    ['/endless-head.sh', /endless-head\.sh answers with a wrong head: no empty line/],
  ] as const) {
    const { status, body } = await get(port, path);
    assert.deepEqual([status, body], [502, 'Bad Gateway\n'], path);
    await waitFor(() => warnings.some((text) => why.test(text)));
  }
});

/** From now on, until the end of the test. */
function warningsOf(t: TestContext): readonly string[] {
  const warnings: string[] = [];
  const onWarning = ({ message }: Error): void => void warnings.push(message);
  process.on('warning', onWarning);
  t.after(() => process.off('warning', onWarning));
  return warnings;
}

test('a program that cannot be started is a bad gateway, and others run', { skip }, async (t) => {
  const { root, port } = await serveScripts(t);
  writeFileSync(join(root, 'broken.sh'), '#!/no/such/interpreter\n');
  chmodSync(join(root, 'broken.sh'), 0o755);
  const warnings = warningsOf(t);
  assert.equal((await get(port, '/broken.sh')).status, 502);
  await waitFor(() =>
    warnings.some((text) => /broken\.sh cannot be started: .*interpreter/.test(text)),
  );
  assert.equal((await get(port, '/hello.sh')).status, 200);
});

test('a program that hangs is ended with all that it started', { skip }, async (t) => {
  const { port, log } = await serveScripts(t, { timeoutMs: 300 });
  // Again, where it was ended before it has begun.
  await waitFor(async () => (await get(port, '/hang.sh')).status === 504 && existsSync(log));
  const pid = Number(readFileSync(log, 'utf8'));
  await waitFor(() => !isRunning(pid) && childrenOf(process.pid).length === 0);
});

test('an incomplete response does not appear complete', { skip }, async (t) => {
  const { port } = await serveScripts(t, { timeoutMs: 300 });
  for (const path of ['/crash.sh', '/stop.sh']) {
    // Again, where it was ended before it has answered.
    const again = async (): Promise<void> => {
      for (let tries = 0; tries < 50; tries += 1) {
        if ((await get(port, path)).status !== 504) return;
      }
    };
    await assert.rejects(again(), { code: 'ECONNRESET' }, path);
  }
});

test('a program may not send more, or less, than it says', { skip }, async (t) => {
  const { port } = await serveScripts(t);
  for (const path of ['/long.sh', '/short.sh']) {
    await assert.rejects(get(port, path), { code: 'ECONNRESET' }, path);
  }
  assert.equal((await get(port, '/lengths.sh')).status, 502);
  assert.deepEqual(await get(port, '/trailer.sh').then(({ body }) => body), 'hello\n');
  assert.equal((await get(port, '/short.sh', { method: 'HEAD' })).headers['content-length'], '500');
});

test('the program of a client that leaves is ended', { skip }, async (t) => {
  const { port, log } = await serveScripts(t);
  const socket = connect(port, '127.0.0.1');
  socket.write('GET /stop.sh HTTP/1.0\r\n\r\n');
  await new Promise((resolve) => socket.once('data', resolve));
  const pid = await waitFor(() => Number(readFileSync(log, 'utf8')) || undefined);
  assert.ok(isRunning(pid));
  socket.destroy();
  await waitFor(() => !isRunning(pid));
});

test('a program that reads nothing of a large body answers all the same', { skip }, async (t) => {
  const { port } = await serveScripts(t);
  const body = Readable.from(Array.from({ length: 64 }, () => Buffer.alloc(2 ** 16)));
  const { status, body: answer } = await get(port, '/deaf.sh', { method: 'POST' }, body);
  assert.deepEqual([status, answer], [200, 'heard nothing\n']);
  // This one does not even close it.
  const more = Readable.from(Array.from({ length: 64 }, () => Buffer.alloc(2 ** 16)));
  assert.equal((await get(port, '/patient.sh', { method: 'POST' }, more)).body, 'heard nothing\n');
});

test('a program whose client reads nothing is ended', { skip }, async (t) => {
  const { port, log } = await serveScripts(t, { timeoutMs: 1000 });
  const socket = connect(port, '127.0.0.1');
  t.after(() => socket.destroy());
  socket.on('error', () => {}).pause();
  socket.write('GET /endless.sh HTTP/1.0\r\n\r\n');
  const pid = await waitFor(() => Number(readFileSync(log, 'utf8')) || undefined);
  await waitFor(() => !isRunning(pid));
});

test('a program that has answered may work on for as long as it may be silent', {
  skip,
}, async (t) => {
  const { port, log } = await serveScripts(t, { timeoutMs: 1000 });
  assert.equal((await get(port, '/behind.sh')).body, 'done\n');
  const pid = Number(readFileSync(log, 'utf8'));
  assert.ok(isRunning(pid));
  await waitFor(() => !isRunning(pid));
});

test('only executable files of the folder run', { skip }, async (t) => {
  const { port } = await serveScripts(t);
  for (const [path, wanted] of [
    ['/data.txt', 403],
    ['/.hidden.sh', 404],
    ['/nothing', 404],
    ['/inner', 404],
    ['/', 404],
    ['/shell', 404],
    ['/../hello.sh', 400],
    ['/%2e%2e/hello.sh', 400],
    ['/hello.sh%00', 400],
    ['/%', 400],
  ] as const) {
    assert.equal((await get(port, path)).status, wanted, path);
  }
  const prefixed = await serveScripts(t, { prefix: '/cgi-bin/' });
  assert.equal((await get(prefixed.port, '/hello.sh')).status, 404);
  assert.equal((await get(prefixed.port, '/cgi-bin/hello.sh?x')).body, 'hello x\n');
});

test('more programs than may run are refused, and may come again', { skip }, async (t) => {
  const { port, go } = await serveScripts(t, { maxPrograms: 1 });
  const first = get(port, '/slow.sh');
  await waitFor(() => childrenOf(process.pid).length > 0);
  const second = await get(port, '/hello.sh');
  assert.deepEqual([second.status, second.headers['retry-after']], [503, '1']);
  writeFileSync(go, '');
  assert.equal((await first).body, 'one\ntwo\n');
  await waitFor(async () => (await get(port, '/hello.sh')).status === 200);
});

test('a program that works on behind its answer counts among those that may run', {
  skip,
}, async (t) => {
  const { port } = await serveScripts(t, { maxPrograms: 1, timeoutMs: 1000 });
  assert.equal((await get(port, '/behind.sh')).body, 'done\n');
  assert.equal((await get(port, '/hello.sh')).status, 503);
  await waitFor(async () => (await get(port, '/hello.sh')).status === 200);
});

test('an answer without a body may say how long the body would be', { skip }, async (t) => {
  const { port } = await serveScripts(t);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.after(() => agent.destroy());
  for (let round = 0; round < 3; round += 1) {
    assert.equal((await get(port, '/unchanged.sh', { agent })).status, 304);
  }
  const [sockets] = Object.values(agent.freeSockets);
  assert.equal(sockets?.length, 1, 'the connection goes on');
});

test('pipes are large', { skip }, async (t) => {
  const { port, root } = await serveScripts(t);
  const text = `#!/usr/bin/env python3
import fcntl, sys
sizes = [fcntl.fcntl(fd, 1032) for fd in (0, 1)]
print('Content-Type: text/plain', '', sizes, sep=chr(10))`;
  writeFileSync(join(root, 'pipes.py'), text);
  chmodSync(join(root, 'pipes.py'), 0o755);
  const { body } = await get(port, '/pipes.py', { method: 'POST' }, Readable.from(['a']));
  assert.equal(body, '[1048576, 1048576]\n'); // F_GETPIPE_SZ
});

test('many programs leave no process and no descriptor', { skip }, async (t) => {
  const { port } = await serveScripts(t);
  await get(port, '/hello.sh');
  const before = openDescriptors().length;
  for (let round = 0; round < 20; round += 1) {
    await Promise.all(Array.from({ length: 5 }, () => get(port, '/hello.sh')));
  }
  await waitFor(() => childrenOf(process.pid).length === 0);
  await waitFor(() => openDescriptors().length <= before);
});

test('wrong options are refused at once', () => {
  assert.throws(() => serveCgi('/no/such/folder'), { code: 'OPTION_INVALID' });
  assert.throws(() => serveCgi('/', { prefix: 'cgi-bin' }), { code: 'OPTION_INVALID' });
  assert.throws(() => serveCgi('/', { timeoutMs: 0 }), { code: 'OPTION_INVALID' });
  assert.throws(() => serveCgi('/', { documentRoot: '/no/such/folder' }), {
    code: 'OPTION_INVALID',
    message: /documentRoot/,
  });
});

test('a head is the same in whatever pieces it comes', () => {
  const text = Buffer.from('Status: 201 Made\r\nContent-Type: a/b\r\n\r\nbody\n\nmore');
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: text.length - 1 })), (cuts) => {
      const reader = new CgiHeadReader();
      const edges = [0, ...cuts.sort((a, b) => a - b), text.length];
      const pieces = edges.slice(1).map((end, at) => text.subarray(edges[at], end));
      let found: ReturnType<CgiHeadReader['push']>;
      const rest: Buffer[] = [];
      for (const piece of pieces) {
        if (found === undefined) found = reader.push(piece);
        else rest.push(piece);
      }
      assert.deepEqual(found?.head, {
        status: 201,
        reason: 'Made',
        redirect: undefined,
        length: undefined,
        headers: [['Content-Type', 'a/b']],
      });
      assert.equal(
        String(Buffer.concat([found?.rest ?? Buffer.alloc(0), ...rest])),
        'body\n\nmore',
      );
    }),
  );
});

test('whatever a program writes, its head is read or refused, and names no connection', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      try {
        const found = new CgiHeadReader().push(Buffer.from(bytes));
        if (found === undefined) return;
        assert.ok(found.head.status >= 200 && found.head.status <= 599);
        for (const [name] of found.head.headers) assert.match(name, /^[!-~]+$/);
      } catch (error) {
        assert.ok(error instanceof CgiOutputError, String(error));
      }
    }),
    { numRuns: 2000 },
  );
  for (const head of ['Status: abc', 'Status: 99', 'Status: 2000', 'a b: c', ': c', 'none']) {
    assert.throws(() => new CgiHeadReader().push(Buffer.from(`${head}\n\n`)), CgiOutputError);
  }
  const quiet = new CgiHeadReader().push(Buffer.from('Transfer-Encoding: chunked\nA: b\n\n'));
  assert.deepEqual(quiet?.head.headers, [['A', 'b']]);
});

test('a program gets the name of its host under every protocol', { skip }, async (t) => {
  const { port, root } = await serveScripts(t);
  const headers = { Host: 'a.example:80' };
  const listener = serveCgi(root);
  const http2 = createHttp2((asked, response) => Reflect.apply(listener, null, [asked, response]));
  t.after(() => http2.close());
  await new Promise<void>((resolve) => http2.listen(0, '127.0.0.1', resolve));
  const session = connectHttp2(`http://127.0.0.1:${(http2.address() as AddressInfo).port}`);
  t.after(() => session.close());
  const ask2 = (path: string) => session.request({ ':path': path, ':authority': 'a.example:80' });
  const bodies = [(await get(port, '/env.sh', { headers })).body, await text(ask2('/env.sh'))];
  for (const body of bodies) {
    assert.match(body, /^HTTP_HOST=a.example:80$/m);
    assert.match(body, /^SERVER_NAME=a.example$/m);
  }
  assert.equal(await text(ask2('/tea.sh')), 'pot\n'); // HTTP/2 has no reason
  assert.equal(await text(ask2('/nph-raw.sh')), 'Bad Gateway\n');
});

test('no header of a client becomes a variable that it must not', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.string()), (headers) => {
      const script = { file: '/a', name: '/a', pathInfo: '' };
      const asked = {
        method: 'GET',
        httpVersion: '1.1',
        headers,
        host: 'a',
        uri: '/a',
        query: '',
        documentRoot: '/',
        remoteAddress: '',
        remotePort: 1,
        serverAddress: '',
        serverPort: 1,
        isSecure: false,
      };
      for (const [name, value] of metaVariables(asked, script, {})) {
        assert.match(name, /^[A-Z0-9_]+$/);
        assert.notEqual(name, 'HTTP_PROXY');
        assert.ok(!value.includes('\0'));
      }
    }),
  );
});
