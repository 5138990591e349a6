// A running server, asked from outside.

import assert from 'node:assert/strict';
import { chmodSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { remoteServers } from '../../../src/serve/control/remote.js';
import { openDescriptors, waitFor } from '../../support/index.js';
import { ask, bodyOf, portOf } from '../client.js';
import { folder, listens, open } from '../served.js';

/** Servers of this test are found in a folder of its own. */
function ownRuntime(t: TestContext): string {
  const before = process.env['XDG_RUNTIME_DIR'];
  const path = folder(t);
  process.env['XDG_RUNTIME_DIR'] = path;
  t.after(() => {
    if (before === undefined) delete process.env['XDG_RUNTIME_DIR'];
    else process.env['XDG_RUNTIME_DIR'] = before;
  });
  return join(path, 'manycore');
}

test('a server is found, reloaded and scaled from outside', async (t) => {
  const runtime = ownRuntime(t);
  const server = await open(t, listens, { loops: 1, maxProcesses: 2, control: true });
  const [found] = await remoteServers();
  assert.ok(found !== undefined);
  assert.equal(found.status.pid, process.pid);
  assert.equal(found.status.app, listens);
  assert.deepEqual(found.status.addresses, server.addresses);
  assert.deepEqual(
    found.status.loops.map(({ state }) => state),
    ['ready'],
  );
  const [before] = server.pids;
  await found.reload();
  assert.notEqual(server.pids[0], before);
  await waitFor(() => server.status().every(({ state }) => state !== 'draining'));
  assert.equal((await found.scale(2)).loops.length, 2);
  assert.equal(server.pids.length, 2);
  await assert.rejects(found.scale(3), {
    code: 'SERVE_CONTROL_FAILED',
    message: /processes is 3: it must be .*2/,
  });
  await server.close();
  assert.deepEqual(await remoteServers(), []);
  assert.deepEqual(readdirSync(runtime), []);
});

test('two servers of one process are found apart', async (t) => {
  ownRuntime(t);
  const servers = [
    await open(t, listens, { loops: 1, control: true }),
    await open(t, listens, { loops: 1, control: true }),
  ];
  const found = await remoteServers();
  const text = (of: { addresses: unknown }) => JSON.stringify(of.addresses);
  assert.deepEqual(new Set(found.map(({ status }) => text(status))), new Set(servers.map(text)));
  assert.equal(found.length, 2);
});

test('a socket that a killed server left behind is removed', async (t) => {
  const runtime = ownRuntime(t);
  mkdirSync(runtime, { mode: 0o700 });
  const stale = join(runtime, 'serve-999999.sock');
  writeFileSync(stale, '');
  assert.deepEqual(await remoteServers(), []);
  assert.ok(!existsSync(stale));
});

test('a runtime folder that others can write to is not trusted', async (t) => {
  const runtime = ownRuntime(t);
  mkdirSync(runtime, { mode: 0o700 });
  chmodSync(runtime, 0o777);
  await assert.rejects(open(t, listens, { control: true }), {
    code: 'RUNTIME_FOLDER_REFUSED',
    message: /is not a private folder of this user/,
  });
});

test('the status is a page and JSON, which change nothing', async (t) => {
  const server = await open(t, listens, { status: 0 });
  const port = server.statusPort ?? 0;
  await bodyOf(portOf(server));
  const page = await ask(port, '/');
  assert.match(String(page.headers['content-type']), /^text\/html/);
  assert.match(page.body, /<td class="text">ready<\/td>/);
  const { pid, loops } = JSON.parse(await bodyOf(port, '/status.json'));
  assert.equal(pid, process.pid);
  assert.equal(loops.length, 2);
  assert.ok(loops.every(({ rssBytes }: { rssBytes: number }) => rssBytes > 2 ** 20));
  assert.equal((await ask(port, '/nothing')).status, 404);
  assert.equal((await ask(port, '/reload', undefined, 'POST')).status, 405);
});

test('an address that is taken is a failed start, with nothing left behind', async (t) => {
  const other = createServer().listen(0, '127.0.0.1');
  t.after(() => other.close());
  await new Promise((resolve) => other.once('listening', resolve));
  const { port }: { port?: number } = Object(other.address());
  const before = openDescriptors().length;
  await assert.rejects(open(t, listens, { status: port }), {
    code: 'SERVE_CONTROL_FAILED',
    message: /EADDRINUSE/,
  });
  assert.equal(openDescriptors().length, before);
});
