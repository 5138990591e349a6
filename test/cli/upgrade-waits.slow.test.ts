// Upgrades that begin while a server starts, and servers that give up while their successor starts.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { type RemoteServer, remoteServers } from '../../src/serve/index.js';
import { ownRuntime } from '../observe/runtime.js';
import { bodyOf } from '../serve/client.js';
import { folder, program, skip } from '../serve/served.js';
import {
  childrenOf,
  freePort,
  isRunning,
  killOne,
  openDescriptors,
  waitFor,
  withDeadline,
} from '../support/index.js';
import { command, deadlineMs, exported, startWith } from './serving.js';

/** The same, once there is a file `go` beside it. */
const waiting = `import { existsSync } from 'node:fs';
  import { setTimeout as sleep } from 'node:timers/promises';
  while (!existsSync(new URL('go', import.meta.url))) await sleep(5);
  ${exported}`;
const isReady = ({ state }: { readonly state: string }): boolean => state === 'ready';
const size = { processes: 1, loops: 1, host: '127.0.0.1' };

test('a server that gives up while its successor starts is replaced by it', {
  skip,
}, async (t) => {
  const app = program(t, 'app.mjs', exported);
  const config = join(folder(t), 'config.json');
  const port = await freePort();
  writeFileSync(config, JSON.stringify({ ...size, app, port, maxFailures: 1 }));
  const server = await startWith(t, ['--config', config]);
  const { child, errors, pids } = server;
  writeFileSync(app, waiting);
  killOne(child.pid, 'SIGUSR2');
  const successor = await waitFor(() => {
    const others = childrenOf(child.pid ?? 0).filter(({ pid }) => !pids.includes(pid));
    const starting = others.find(({ pid }) => childrenOf(pid).length > 0);
    return starting?.pid;
  }, deadlineMs);
  killOne(pids[0], 'SIGKILL');
  await waitFor(() => errors.some((line) => line.includes('(SERVE_FAILED)')), deadlineMs);
  assert.ok(isRunning(successor));
  writeFileSync(join(dirname(app), 'go'), '');
  await waitFor(() => server.lines.length === 2, deadlineMs);
  assert.equal(await bodyOf(port), String(successor));
  assert.equal(child.exitCode, null);
});

test('the successor does what is requested while it starts: reload, scale, stop', {
  skip,
}, async (t) => {
  ownRuntime(t);
  const app = program(t, 'app.mjs', exported);
  const go = join(dirname(app), 'go');
  const [port, config] = [await freePort(), join(folder(t), 'config.json')];
  writeFileSync(
    config,
    JSON.stringify({ ...size, app, port, name: 'shop', processes: { min: 1, max: 2 } }),
  );
  const { child, errors } = await startWith(t, ['--config', config]);
  writeFileSync(app, waiting);
  const requested: readonly (readonly [(server: RemoteServer) => Promise<unknown>, number])[] = [
    [(server) => server.reload(), 1],
    [(server) => server.scale(2), 2],
    [(server) => server.stop(), 0],
  ];
  for (const [request, processes] of requested) {
    const [server] = await remoteServers();
    assert.ok(server !== undefined);
    const old = server.status.pid;
    const pids = childrenOf(child.pid ?? 0).map(({ pid }) => pid);
    const upgraded = server.upgrade();
    await waitFor(
      () => childrenOf(child.pid ?? 0).some(({ pid }) => !pids.includes(pid)),
      deadlineMs,
    );
    const done = request(server);
    await remoteServers(); // answered by the same loop, over a later connection
    writeFileSync(go, '');
    await withDeadline(Promise.all([upgraded, done]), deadlineMs, 'upgrade and command');
    rmSync(go);
    const left = await remoteServers();
    assert.deepEqual(
      left.map(({ status: { pid, loops } }) => [pid, loops.filter(isReady).length]),
      processes === 0 ? [] : [[old, processes]],
    );
  }
  assert.deepEqual(errors, []);
});

test('a command for a server that is gone reaches no other one of its name', {
  skip,
}, async (t) => {
  ownRuntime(t);
  const app = program(t, 'app.mjs', exported);
  const serveOn = async (port: number) => {
    const config = join(folder(t), 'config.json');
    writeFileSync(config, JSON.stringify({ ...size, app, port, name: 'shop' }));
    return await startWith(t, ['--config', config]);
  };
  const port = await freePort();
  const first = await serveOn(await freePort());
  const [gone] = await remoteServers();
  assert.ok(gone !== undefined);
  const second = await serveOn(port);
  killOne(first.child.pid, 'SIGTERM');
  await withDeadline(once(first.child, 'close'), deadlineMs, 'the end of the first');
  await assert.rejects(gone.stop());
  assert.equal(await bodyOf(port), String(second.child.pid));
});

test('manycore upgrade waits for the start of a server', { skip }, async (t) => {
  ownRuntime(t);
  const config = join(folder(t), 'config.json');
  const [one, two] = [await freePort(), await freePort()];
  const slow = program(t, 'app.mjs', waiting);
  const apps = [
    { ...size, app: program(t, 'app.mjs', exported), port: one, name: 'one' },
    { ...size, app: slow, port: two, name: 'two' },
  ];
  writeFileSync(config, JSON.stringify({ apps }));
  const server = spawn(process.execPath, [command, 'serve', '--config', config]);
  t.after(() => server.kill('SIGKILL'));
  server.stdout.resume();
  server.stderr.resume();
  const isUp = async () => (await remoteServers()).some(({ status }) => status.name === 'one');
  await waitFor(async () => (await isUp()) && childrenOf(server.pid ?? 0).length === 2, deadlineMs);
  const before = openDescriptors(server.pid).length;
  const upgrade = spawn(process.execPath, [command, 'upgrade', 'one']);
  t.after(() => upgrade.kill('SIGKILL'));
  const printed = Promise.all([text(upgrade.stdout), text(upgrade.stderr)]);
  await waitFor(() => openDescriptors(server.pid).length > before, deadlineMs); // it is connected
  writeFileSync(join(dirname(slow), 'go'), '');
  const [code] = await withDeadline(once(upgrade, 'close'), deadlineMs, 'the upgrade');
  assert.deepEqual([code, ...(await printed)], [0, 'upgraded\n', '']);
  const serving = await bodyOf(one);
  assert.notEqual(serving, String(server.pid));
  assert.equal(await bodyOf(two), serving);
});
