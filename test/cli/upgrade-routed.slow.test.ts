// Upgrades of servers whose clients go through a thread of the supervisor: apps that share a port by their names, and
// clients that stay with one loop.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { ask, keepBusy } from '../serve/client.js';
import { folder, program, skip } from '../serve/served.js';
import { freePort, isRunning, killOne, openDescriptors, waitFor } from '../support/index.js';
import { deadlineMs, type Running, startWith, upgrade } from './serving.js';

/** An app that answers with a name and the pid of its supervisor. */
function named(t: TestContext, name: string): string {
  return program(
    t,
    'app.mjs',
    `export default (request, response) => response.end('${name} ' + process.ppid);`,
  );
}

const stickyApp = fileURLToPath(new URL('../serve/apps/sticky.js', import.meta.url));
const size = { processes: 2, loops: 1, host: '127.0.0.1' };

interface Configured {
  readonly port: number;
  /** Names that clients request. */
  readonly hosts: readonly string[];
  /** Writes the configuration, with these options for each app. */
  write(options: object): void;
  start(): Promise<Running>;
}

async function configure(t: TestContext, what: 'two apps' | 'one app'): Promise<Configured> {
  const port = await freePort();
  const config = join(folder(t), 'config.json');
  const isTwo = what === 'two apps';
  const hosts = isTwo ? ['one.example', 'two.example'] : ['127.0.0.1'];
  const apps = isTwo
    ? hosts.map((name) => ({ ...size, app: named(t, name), port, serverNames: [name] }))
    : [{ ...size, host: undefined, app: stickyApp, port }]; // it listens by itself
  const write = (options: object): void => {
    writeFileSync(config, JSON.stringify({ apps: apps.map((app) => ({ ...app, ...options })) }));
  };
  const start = async (): Promise<Running> => {
    const server = await startWith(t, ['--config', config]);
    const isUp = () => server.lines.filter((line) => line.includes(`:${port}`)).length;
    await waitFor(() => isUp() >= apps.length, deadlineMs);
    return server;
  };
  return { port, hosts, write, start };
}

/** A client that has sent half of its head. */
async function halfRequest(port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  socket.write('GET / HTTP/1.1\r\nConnection: close\r\nHo');
  await waitFor(() => socket.bytesWritten > 0 && !socket.connecting, deadlineMs);
  return socket;
}

function finish(socket: Socket, host: string): Promise<string> {
  socket.write(`st: ${host}\r\n\r\n`);
  return text(socket);
}

for (const [what, kind, options] of [
  ['serverNames', 'two apps', {}],
  ['sticky clients by address', 'one app', { sticky: 'address' }],
  ['sticky clients by cookie', 'one app', { sticky: { cookie: 'at' } }],
  ['serverNames and a cookie', 'two apps', { sticky: { cookie: 'at' } }],
] as const) {
  test(`five upgrades with ${what} lose no request, and leave nothing behind`, {
    skip,
  }, async (t) => {
    const { port, hosts, write, start } = await configure(t, kind);
    write(options);
    const server = await start();
    const load = hosts.flatMap((host) =>
      [true, false].map((isKeptAlive) => keepBusy(port, 3, isKeptAlive, '/', { host })),
    );
    const open: { head: number; successor: number }[] = [];
    let successor: number | undefined;
    for (let round = 0; round < 5; round += 1) {
      const answers = load.map((each) => each.answers());
      const isPlacedAtOnce = 'sticky' in options && options.sticky === 'address';
      const half = isPlacedAtOnce ? undefined : await halfRequest(port);
      successor = await upgrade(server, successor);
      if (half !== undefined) {
        const answer = await finish(half, hosts[0] ?? '');
        assert.match(answer, /^HTTP\/1.1 200 /);
        if (kind === 'two apps') assert.match(answer, new RegExp(`one.example ${successor}`));
      }
      const isServed = () => load.every((each, at) => each.answers() > (answers[at] ?? 0) + 50);
      await waitFor(isServed, deadlineMs);
      const [head, own] = [server.child.pid, successor].map((pid) => openDescriptors(pid).length);
      open.push({ head: head ?? NaN, successor: own ?? NaN });
    }
    for (const each of load) assert.deepEqual((await each.stop()).failures, []);
    const [, first] = open;
    const last = open.at(-1);
    // Connections of clients come and go.
    assert.ok((last?.head ?? NaN) <= (first?.head ?? NaN) + 4, JSON.stringify(open));
    assert.ok((last?.successor ?? NaN) <= (first?.successor ?? NaN) + 12, JSON.stringify(open));
    killOne(server.child.pid, 'SIGTERM');
    await waitFor(() => server.child.exitCode !== null, deadlineMs);
    assert.equal(server.child.exitCode, 0);
    assert.ok(!isRunning(successor ?? 0));
    await assert.rejects(ask(port), { code: 'ECONNREFUSED' });
  });
}

test('a client with a cookie has one loop again after an upgrade', { skip }, async (t) => {
  const { port, write, start } = await configure(t, 'one app');
  write({ sticky: { cookie: 'at' }, loops: 2 });
  const server = await start();
  let cookie = '';
  const see = async (): Promise<string> => {
    const { status, body, headers } = await ask(port, '/', undefined, 'GET', { cookie });
    assert.equal(status, 200);
    const [set] = [headers['set-cookie'] ?? []].flat();
    cookie = set?.split(';')[0] ?? cookie;
    const { pid, loop }: { pid: number; loop: string } = JSON.parse(body);
    return `${pid} ${loop}`;
  };
  let before = await see();
  let successor: number | undefined;
  for (let round = 0; round < 3; round += 1) {
    successor = await upgrade(server, successor);
    const after = await see();
    assert.notEqual(after, before);
    for (let at = 0; at < 8; at += 1) assert.equal(await see(), after);
    before = after;
  }
});

test('a successor of which one app fails leaves the old server with its names', {
  skip,
}, async (t) => {
  const port = await freePort();
  const config = join(folder(t), 'config.json');
  const [one, two] = [named(t, 'one'), named(t, 'two')];
  const apps = [
    { ...size, app: one, port, serverNames: ['one.example'] },
    { ...size, app: two, port, serverNames: ['two.example'] },
  ];
  writeFileSync(config, JSON.stringify({ apps }));
  const server = await startWith(t, ['--config', config]);
  const { child, errors, lines } = server;
  await waitFor(() => lines.length === 2, deadlineMs);
  const load = ['one.example', 'two.example'].flatMap((host) =>
    [true, false].map((isKeptAlive) => keepBusy(port, 3, isKeptAlive, '/', { host })),
  );
  const whole = `export default (request, response) => response.end('two ' + process.ppid);`;
  for (let round = 1; round <= 2; round += 1) {
    writeFileSync(two, 'export default (');
    const half = await halfRequest(port);
    killOne(child.pid, 'SIGUSR2');
    const failures = () => errors.filter((line) => line.includes('(SERVE_UPGRADE_FAILED)')).length;
    await waitFor(() => failures() === round, deadlineMs);
    assert.match(await finish(half, 'two.example'), new RegExp(`two ${child.pid}`));
    writeFileSync(two, whole);
  }
  killOne(child.pid, 'SIGUSR2');
  const bodyFor = async (host: string): Promise<string> =>
    (await ask(port, '/', undefined, 'GET', { host })).body;
  await waitFor(async () => !(await bodyFor('two.example')).endsWith(` ${child.pid}`), deadlineMs);
  assert.match(await bodyFor('one.example'), /^one /);
  for (const each of load) assert.deepEqual((await each.stop()).failures, []);
});

test('names and sticky that come or go with an upgrade lose no request', { skip }, async (t) => {
  const { port, write, start } = await configure(t, 'one app');
  write({});
  const server = await start();
  const load = [keepBusy(port, 3, true), keepBusy(port, 3, false)];
  let successor: number | undefined;
  let waits = false;
  for (const [options, waitsForHead] of [
    [{ sticky: { cookie: 'at' } }, true],
    [{}, false],
    [{ serverNames: ['127.0.0.1'] }, true],
    [{ sticky: 'address' }, false],
  ] as const) {
    write(options);
    const half = waits ? await halfRequest(port) : undefined;
    waits = waitsForHead;
    const answers = load.map((each) => each.answers());
    successor = await upgrade(server, successor);
    const isServed = () => load.every((each, at) => each.answers() > (answers[at] ?? 0) + 50);
    await waitFor(isServed, deadlineMs);
    if (half !== undefined) assert.match(await finish(half, '127.0.0.1'), /^HTTP\/1.1 200 /);
  }
  for (const each of load) assert.deepEqual((await each.stop()).failures, []);
});
