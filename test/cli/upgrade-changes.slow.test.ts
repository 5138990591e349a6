// Upgrades whose configuration has changed, and upgrades that the running server refuses.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { remoteServers } from '../../src/serve/index.js';
import { ownRuntime } from '../observe/runtime.js';
import { ask, bodyOf } from '../serve/client.js';
import { folder, program, skip } from '../serve/served.js';
import { freePort, killOne, waitFor } from '../support/index.js';
import { command, deadlineMs, exported, startWith } from './serving.js';

const size = { processes: 1, loops: 1, host: '127.0.0.1' };
/** Longest wait for a command: without an answer it would wait for ever. */
const runLimitMs = 60_000;

function run(...args: string[]): { status: number | null; stdout: string; stderr: string } {
  return spawnSync(process.execPath, [command, ...args], { encoding: 'utf8', timeout: runLimitMs });
}

test('another name, and another form of an address, keep the ports of status, health and metrics', {
  skip,
}, async (t) => {
  ownRuntime(t);
  const app = program(t, 'app.mjs', exported);
  const config = join(folder(t), 'config.json');
  const [status, health, metrics] = [await freePort(), await freePort(), await freePort()];
  const content = { ...size, app, port: await freePort(), status, health };
  writeFileSync(config, JSON.stringify({ ...content, name: 'shop', metrics }));
  const { port } = await startWith(t, ['--config', config]);
  writeFileSync(config, JSON.stringify({ ...content, name: 'store', metrics: { port: metrics } }));
  assert.equal(run('upgrade', 'shop').stdout, 'upgraded\n');
  const [found, second] = await remoteServers();
  assert.deepEqual([found?.status.name, second], ['store', undefined]);
  for (const [at, path] of [
    [status, '/status.json'],
    [health, '/readyz'],
    [metrics, '/metrics'],
  ]) {
    assert.equal((await fetch(`http://127.0.0.1:${at}${path}`)).status, 200, `${path}`);
  }
  assert.equal((await ask(port)).status, 200);
});

test('an app that was stopped does not keep the others from an upgrade, and is started again', {
  skip,
}, async (t) => {
  ownRuntime(t);
  const app = program(t, 'app.mjs', exported);
  const config = join(folder(t), 'config.json');
  const [one, two] = [await freePort(), await freePort()];
  const apps = [
    { ...size, app, port: one, name: 'one' },
    { ...size, app, port: two, name: 'two' },
  ];
  writeFileSync(config, JSON.stringify({ apps }));
  const server = await startWith(t, ['--config', config]);
  await waitFor(() => server.lines.some((line) => line.endsWith(`:${two}`)), deadlineMs);
  for (let round = 0; round < 2; round += 1) {
    const before = await bodyOf(one);
    assert.equal(run('stop', 'two').status, 0);
    const { status, stderr } = run('upgrade', 'one');
    assert.equal(status, 0, stderr);
    assert.notEqual(await bodyOf(one), before);
    assert.equal(await bodyOf(two), await bodyOf(one));
  }
});

const prlimit = spawnSync('prlimit', ['--version']).status === 0 ? undefined : 'needs prlimit';

test('a successor that refuses the next upgrade serves on, and takes reloads', {
  skip: skip || prlimit,
}, async (t) => {
  ownRuntime(t);
  const app = program(t, 'app.mjs', exported);
  const config = join(folder(t), 'config.json');
  const content = { ...size, app, port: await freePort(), name: 'shop' };
  writeFileSync(config, JSON.stringify(content));
  const server = await startWith(t, ['--config', config]);
  assert.equal(run('upgrade', 'shop').stdout, 'upgraded\n');
  const serving = await bodyOf(content.port);
  const limitFiles = (files: string): void => {
    const { status, stderr } = spawnSync('prlimit', ['--pid', serving, `--nofile=${files}`]);
    assert.equal(status, 0, String(stderr));
  };
  const shown = ['--noheadings', '--raw', '--output', 'SOFT,HARD', '--nofile', '--pid', serving];
  const { stdout } = spawnSync('prlimit', shown);
  const before = String(stdout).trim().split(/\s+/).join(':');
  for (let round = 0; round < 2; round += 1) {
    // None is free: no number below this one.
    limitFiles(`8:${before.split(':')[1]}`);
    killOne(server.child.pid, 'SIGUSR2');
    await waitFor(
      () => server.errors.filter((line) => line.includes('cannot be duplicated')).length > round,
      deadlineMs,
    );
    limitFiles(before);
    assert.equal(run('reload', 'shop').status, 0);
    assert.equal(await bodyOf(content.port), serving);
  }
  assert.equal(run('upgrade', 'shop').stdout, 'upgraded\n');
  await waitFor(async () => (await bodyOf(content.port)) !== serving, deadlineMs);
});

test('sockets of each process (reuseport) are not left without a listener by other options', {
  skip,
}, async (t) => {
  ownRuntime(t);
  const app = program(t, 'app.mjs', exported);
  const config = join(folder(t), 'config.json');
  const content = { ...size, processes: 2, app, port: await freePort(), name: 'shop' };
  writeFileSync(config, JSON.stringify({ ...content, placement: 'reuseport' }));
  const server = await startWith(t, ['--config', config]);
  const serving = await bodyOf(content.port);
  writeFileSync(config, JSON.stringify({ ...content, sticky: 'address' }));
  const { status, stderr } = run('upgrade', 'shop');
  assert.equal(status, 2, stderr);
  assert.match(stderr, /a socket of its own \(reuseport\): sticky and serverNames need a restart/);
  for (let at = 0; at < 8; at += 1) assert.equal(await bodyOf(content.port), serving);
  assert.equal(serving, String(server.child.pid));
});
