// The access log of `manycore serve`: a line for each request, in both formats, over HTTP/1 and HTTP/2; files that
// move, vanish or cannot be written.

import assert from 'node:assert/strict';
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { servePlan } from '../../src/cli/commands/serve/serve-config.js';
import { fillServeOptions } from '../../src/serve/options.js';
import { cert, key } from '../serve/apps/certificate.js';
import { ask, begin, bodyOf, keepBusy, portOf, secureBody } from '../serve/client.js';
import { folder, open, program, skip } from '../serve/served.js';
import { killOne, waitFor } from '../support/index.js';
import { deadlineMs, startWith } from './serving.js';

/** Answers with 10 bytes; `/untilFILE` blocks its loop until that exists, `/missing` is 404, `/slow` never ends. */
const text = `
import { existsSync } from 'node:fs';
export default (request, response) => {
  if (request.url === '/slow') response.write('begun');
  else if (request.url.startsWith('/until')) {
    while (!existsSync(request.url.slice('/until'.length)));
    response.end('0123456789');
  } else if (request.url === '/missing') response.writeHead(404).end();
  else {
    response.setHeader('Content-Length', 10);
    response.end('0123456789');
  }
};
`;

const app = (t: TestContext): string => program(t, 'answers.mjs', text);

function linesIn(path: string): string[] {
  return existsSync(path) ? readFileSync(path, 'utf8').split('\n').slice(0, -1) : [];
}

/** A server with this program in this process, and its lines as objects. */
async function logged(t: TestContext, options: object = {}) {
  const lines: Record<string, unknown>[] = [];
  const onLines = (batch: string): void => {
    assert.ok(batch.endsWith('\n'));
    for (const line of batch.slice(0, -1).split('\n')) lines.push(JSON.parse(line));
  };
  const accessLog = { format: 'json' as const, onLines };
  const server = await open(t, app(t), { loops: 1, port: 0, ...options, accessLog });
  return { server, port: portOf(server), lines };
}

test('an object has what a request was, its answer, its loop, and its wait', {
  skip,
}, async (t) => {
  const { port, lines } = await logged(t);
  assert.equal(await bodyOf(port, '/a?b="c"'), '0123456789');
  await ask(port, '/missing', undefined, 'POST');
  await waitFor(() => lines.length === 2);
  const [first = {}, second = {}] = lines;
  const { time, bytes, durationMs, waitMs, ...others } = first;
  assert.deepEqual(others, {
    name: 'answers',
    process: 0,
    loop: 0,
    client: '127.0.0.1',
    method: 'GET',
    path: '/a?b="c"',
    version: '1.1',
    status: 200,
  });
  assert.ok(Math.abs(Date.parse(String(time)) - Date.now()) < 60_000);
  assert.ok(Number(bytes) > 10 && Number(bytes) < 500, `${bytes}`);
  assert.ok(Number(durationMs) >= 0 && Number(waitMs) >= 0);
  assert.deepEqual([second.status, second.method], [404, 'POST']);
});

test('each loop logs, and each request of each kind of connection once', async (t) => {
  const { port, lines } = await logged(t, { processes: 2, loops: 2 });
  const loads = [keepBusy(port, 2, true), keepBusy(port, 2, false)];
  await waitFor(() => new Set(lines.map((line) => `${line.process}.${line.loop}`)).size === 4);
  let answers = 0;
  for (const load of loads) answers += (await load.stop()).answers;
  await waitFor(() => lines.length === answers);
  assert.ok(lines.every(({ status, aborted }) => status === 200 && aborted === undefined));
});

test('bytes are those of one answer, also where requests come ahead', async (t) => {
  const { port, lines } = await logged(t);
  const socket = connect(port, '127.0.0.1');
  t.after(() => socket.destroy());
  let received = '';
  socket.on('data', (bytes) => {
    received += String(bytes);
  });
  const request = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';
  socket.write(request.repeat(3));
  await waitFor(() => lines.length === 3 && received.split('0123456789').length === 4);
  const sent = lines.reduce((sum, { bytes }) => sum + Number(bytes), 0);
  assert.equal(sent, received.length);
  assert.equal(new Set(lines.map(({ bytes }) => bytes)).size, 1);
});

test('a client that leaves is logged, before and after its answer has begun', async (t) => {
  const { port, lines } = await logged(t);
  const begun = await begin(port, '/slow');
  begun.leave();
  await waitFor(() => lines.length === 1);
  assert.deepEqual([lines[0]?.status, lines[0]?.aborted], [200, true]);
});

test('the wait of a connection is that behind a blocked loop', { skip }, async (t) => {
  const { server, port, lines } = await logged(t, { processes: 1, loops: 1 });
  const file = join(folder(t), 'go');
  const busy = bodyOf(port, `/until${file}`);
  const loop = () => server.status()[0];
  await waitFor(() => loop()?.requestsInFlight === 1);
  const waiting = bodyOf(port, '/waits');
  await waitFor(() => loop()?.openConnections === 2 && Number(loop()?.blockedMs) > 0);
  writeFileSync(file, '');
  await Promise.all([busy, waiting]);
  await waitFor(() => lines.length === 2);
  assert.ok(Number(lines.find(({ path }) => path === '/waits')?.waitMs) > 0);
});

test('HTTP/2 and HTTP/1 over TLS are logged once each', async (t) => {
  const files = folder(t);
  writeFileSync(join(files, 'cert'), cert);
  writeFileSync(join(files, 'key'), key);
  const tls = { cert: join(files, 'cert'), key: join(files, 'key'), http2: true };
  const { port, lines } = await logged(t, { tls });
  await secureBody(port, 'h2');
  await secureBody(port, 'http/1.1');
  await waitFor(() => lines.length === 2);
  assert.deepEqual(
    lines.map(({ version, status, method, path }) => [version, status, method, path]),
    [
      ['2.0', 200, 'GET', '/'],
      ['1.1', 200, 'GET', '/'],
    ],
  );
  assert.equal(lines[0]?.bytes, 10);
  if (skip === false) assert.ok(lines.every(({ waitMs }) => typeof waitMs === 'number'));
});

test('the last requests of a server that ends are logged', async (t) => {
  const { server, port, lines } = await logged(t);
  await bodyOf(port);
  await server.close();
  assert.equal(lines.length, 1);
});

const common =
  /^127\.0\.0\.1 - - \[\d\d\/[A-Z][a-z]{2}\/\d{4}:\d\d:\d\d:\d\d \+0000\] "GET \/ HTTP\/1\.1" 200 \d+ [\d.]+ 0\.0 (\d+|-)$/;

test('a file has lines in the common format; one that was moved or removed is made again', async (t) => {
  const file = join(folder(t), 'access.log');
  const flags = [app(t), '--port', '0', '-P', '1', '-L', '1', '--access-log', file];
  const { port, child } = await startWith(t, flags);
  await bodyOf(port);
  await waitFor(() => linesIn(file).length === 1, deadlineMs);
  assert.match(linesIn(file)[0] ?? '', common);
  renameSync(file, `${file}.1`);
  killOne(child.pid, 'SIGUSR1');
  await waitFor(() => existsSync(file), deadlineMs);
  await bodyOf(port);
  await waitFor(() => linesIn(file).length === 1, deadlineMs);
  rmSync(file);
  await waitFor(async () => {
    await bodyOf(port);
    return existsSync(file);
  }, deadlineMs);
  assert.equal(linesIn(`${file}.1`).length, 1);
});

test('a full disk is reported once, and the server answers', async (t) => {
  const flags = [app(t), '--port', '0', '-L', '1', '--access-log', '/dev/full'];
  const { port, errors } = await startWith(t, flags);
  await bodyOf(port);
  await waitFor(() => errors.length > 0, deadlineMs);
  for (let count = 0; count < 3; count += 1) await bodyOf(port);
  assert.equal(errors.length, 1);
  assert.match(errors[0] ?? '', /the log \/dev\/full cannot be written: ENOSPC.*lines are lost/);
});

test('wrong options are refused by name', (t) => {
  const onLines = (): void => {};
  for (const accessLog of [null, 5, 'file', {}, { onLines: 5 }, { onLines, format: 'combined' }]) {
    assert.throws(
      () => Reflect.apply(fillServeOptions, undefined, [{ accessLog }]),
      (error: Error & { code?: string }) =>
        error.code === 'OPTION_INVALID' && error.message.includes('accessLog'),
    );
  }
  const path = folder(t);
  writeFileSync(join(path, 'app.js'), '');
  const config = join(path, 'manycore.config.json');
  for (const accessLog of [
    null,
    [],
    'file',
    {},
    { file: 5 },
    { file: 'a', format: 'text' },
    { file: 'a', maxMb: 0 },
    { file: 'a', keep: -1 },
    { file: 'a', size: 1 },
  ]) {
    writeFileSync(config, JSON.stringify({ app: 'app.js', accessLog }));
    assert.throws(
      () => servePlan(undefined, [], { config }),
      (error: Error & { code?: string }) =>
        error.code === 'OPTION_INVALID' && error.message.includes('accessLog'),
    );
  }
  writeFileSync(config, JSON.stringify({ app: 'app.js', accessLog: { file: 'a' } }));
  assert.equal(servePlan(undefined, [], { config }).apps[0]?.accessLog?.file, join(path, 'a'));
  assert.throws(() => servePlan(undefined, [], { config, accessLogFormat: 'json' }), {
    code: 'OPTION_INVALID',
  });
});
