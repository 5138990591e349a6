// A running command is replaced by another process (`USR2`, `manycore upgrade`): no request is lost, the pid stays, and
// a successor that does not start changes nothing.
// Long (over 400 lines), because each way to fail or to end has a test of its own.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { get } from 'node:https';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { remoteServers } from '../../src/serve/index.js';
import { ownRuntime } from '../observe/runtime.js';
import { cert, key } from '../serve/apps/certificate.js';
import { ask, begin, bodyOf, bodyOver, keepBusy } from '../serve/client.js';
import { folder, listens, program, skip } from '../serve/served.js';
import {
  childrenOf,
  isRunning,
  killOne,
  openDescriptors,
  waitFor,
  withDeadline,
} from '../support/index.js';
import { command, deadlineMs, exported, type Running, startWith, upgrade } from './serving.js';

function supervisorOf(port: number): Promise<string> {
  return bodyOf(port);
}

/** Not `spawnSync`: clients of a blocked loop leave their connections idle, which servers close. */
async function run(
  ...args: string[]
): Promise<{ status: number | null; stdout: string; stderr: string }> {
  const child = spawn(process.execPath, [command, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 60_000,
  });
  const [stdout, stderr] = [text(child.stdout), text(child.stderr)];
  const [status] = await once(child, 'close');
  return { status, stdout: await stdout, stderr: await stderr };
}

/** Resolves with exit code and signal. */
function exitOf({ child }: Running): Promise<unknown> {
  const has = child.exitCode !== null || child.signalCode !== null;
  const exit = has ? Promise.resolve([child.exitCode, child.signalCode]) : once(child, 'exit');
  return withDeadline(exit, deadlineMs, 'the exit');
}

for (const flags of [
  ['-P', '2', '-L', '1'],
  ['-P', '1', '-L', '2'],
  ['-P', '2', '-L', '1', '--placement', 'reuseport'],
  ['-P', '2', '-L', '1', '--placement', 'round-robin', '--no-rescue'],
]) {
  test(`ten upgrades with ${flags.join(' ')} lose no request, and leave nothing behind`, {
    skip,
  }, async (t) => {
    const pidFile = join(folder(t), 'pid');
    const server = await startWith(t, [...flags, '--pid-file', pidFile, listens]);
    const { child, port } = server;
    const load = [keepBusy(port, 4, true), keepBusy(port, 4, false)];
    const open: { head: number; successor: number }[] = [];
    let successor: number | undefined;
    for (let round = 0; round < 10; round += 1) {
      const answers = load.map((each) => each.answers());
      successor = await upgrade(server, successor);
      await waitFor(() => load.every((each, at) => each.answers() > (answers[at] ?? 0) + 50));
      const [head, own] = [child.pid, successor].map((pid) => openDescriptors(pid).length);
      open.push({ head: head ?? NaN, successor: own ?? NaN });
    }
    for (const each of load) assert.deepEqual((await each.stop()).failures, []);
    const [, first] = open;
    const last = open.at(-1);
    // Connections of clients come and go.
    assert.ok((last?.head ?? NaN) <= (first?.head ?? NaN) + 4, JSON.stringify(open));
    assert.ok((last?.successor ?? NaN) <= (first?.successor ?? NaN) + 4, JSON.stringify(open));
    assert.equal(readFileSync(pidFile, 'utf8'), `${child.pid}\n`);
    assert.equal(server.lines.filter((line) => line.endsWith(`:${port}`)).length, 11);
    killOne(child.pid, 'SIGTERM');
    assert.deepEqual(await exitOf(server), [0, null]);
    assert.ok(!existsSync(pidFile));
    assert.ok(!isRunning(successor ?? 0));
    await assert.rejects(ask(port), { code: 'ECONNREFUSED' });
  });
}

test('upgrades lose no request that was on its way from a blocked loop to another process', {
  skip,
}, async (t) => {
  // The kernel gives connections to a process whether its loop has time or not.
  const flags = ['-P', '2', '-L', '1', '--placement', 'reuseport', listens];
  const server = await startWith(t, flags);
  const { port } = server;
  const path = '/?block=12';
  const load = [keepBusy(port, 6, true, path), keepBusy(port, 16, false, path)];
  let successor: number | undefined;
  for (let round = 0; round < 4; round += 1) {
    const answers = load.map((each) => each.answers());
    successor = await upgrade(server, successor);
    await waitFor(() => load.every((each, at) => each.answers() > (answers[at] ?? 0) + 20));
  }
  for (const each of load) assert.deepEqual((await each.stop()).failures, []);
});

test('commands and signals reach the successor, by the name and by the pid of the first process', {
  skip,
}, async (t) => {
  ownRuntime(t);
  const server = await startWith(t, ['-P', '1', '-L', '1', '--name', 'shop', listens]);
  const { child, port, lines } = server;
  for (let round = 0; round < 2; round += 1) {
    assert.equal((await run('upgrade', 'shop')).stdout, 'upgraded\n');
    const [found, second] = await remoteServers();
    assert.equal(second, undefined);
    assert.equal(found?.status.pid, child.pid);
  }
  const before = await bodyOf(port);
  assert.equal((await run('reload', String(child.pid))).status, 0);
  assert.notEqual(await bodyOf(port), before);
  killOne(child.pid, 'SIGHUP');
  await waitFor(() => lines.filter((line) => line === 'reloaded').length === 2, deadlineMs);
  killOne(child.pid, 'SIGTTIN');
  await waitFor(() => lines.includes('serving from 2 processes'), deadlineMs);
  assert.equal((await run('stop', 'shop')).status, 0);
  assert.deepEqual(await exitOf(server), [0, null]);
  assert.deepEqual(await remoteServers(), []);
});

test('an open request is answered by the old server, and two signals make one successor', {
  skip,
}, async (t) => {
  const flag = join(folder(t), 'go');
  const server = await startWith(t, ['-P', '1', '-L', '1', listens]);
  const { child, port } = server;
  const held = await begin(port, `/?wait=1&until=${flag}`);
  const old = server.pids[0] ?? 0;
  killOne(child.pid, 'SIGUSR2');
  killOne(child.pid, 'SIGUSR2');
  await waitFor(() => server.lines.length === 2, deadlineMs);
  await waitFor(async () => Number((await bodyOf(port)).split(':')[0]) !== old, deadlineMs);
  assert.ok(isRunning(old));
  writeFileSync(flag, '');
  assert.equal(await held.body, `began ${old}:0`);
  await waitFor(() => !isRunning(old), deadlineMs);
  assert.equal(childrenOf(child.pid ?? 0).length, 1);
});

const broken = {
  'a program with a syntax error': { text: 'export default (', why: 'SyntaxError' },
  'a program that does not listen in time': {
    text: 'await new Promise((resolve) => setTimeout(resolve, 1e6));',
    why: 'SERVE_START_FAILED',
  },
  'a program that exits': { text: 'process.exit(3);', why: 'exit code 3' },
} as const;

for (const [what, { text: brokenText, why }] of Object.entries(broken)) {
  test(`${what} leaves the old server as it is`, { skip }, async (t) => {
    ownRuntime(t);
    const app = program(t, 'app.mjs', exported);
    const config = join(folder(t), 'config.json');
    const content = { app, port: 0, host: '127.0.0.1', processes: 2, loops: 1, name: 'shop' };
    writeFileSync(config, JSON.stringify(content));
    const server = await startWith(t, ['--config', config]);
    const { child, port, errors } = server;
    const load = [keepBusy(port, 2, true), keepBusy(port, 2, false)];
    writeFileSync(app, brokenText);
    writeFileSync(config, JSON.stringify({ ...content, startTimeoutMs: 5000 }));
    killOne(child.pid, 'SIGUSR2');
    const message = await waitFor(
      () => errors.find((line) => line.includes('(SERVE_UPGRADE_FAILED)')),
      deadlineMs,
    );
    assert.match(message, /^manycore: the server was not upgraded, the old one serves on: /);
    assert.ok(
      errors.some((line) => line.includes(why)),
      errors.join('\n'),
    );
    const { status, stderr } = await run('upgrade', 'shop');
    assert.equal(status, 2);
    assert.match(stderr, /^manycore: the server did not upgrade: .*\(SERVE_CONTROL_FAILED\)$/m);
    assert.equal(await supervisorOf(port), String(child.pid));
    assert.deepEqual(
      childrenOf(child.pid ?? 0)
        .map(({ pid }) => pid)
        .sort(),
      [...server.pids].sort(),
    );
    writeFileSync(app, exported);
    writeFileSync(config, JSON.stringify(content));
    assert.equal((await run('upgrade', 'shop')).stdout, 'upgraded\n');
    await waitFor(async () => (await supervisorOf(port)) !== String(child.pid), deadlineMs);
    for (const each of load) assert.deepEqual((await each.stop()).failures, []);
  });
}

test('a successor of which one process fails answers what another has accepted', {
  skip,
}, async (t) => {
  const place = folder(t);
  const app = join(place, 'app.mjs');
  writeFileSync(app, exported);
  const flags = ['-P', '2', '-L', '1', '--port', '0', '--host', '127.0.0.1', app];
  const server = await startWith(t, flags);
  const { port, errors } = server;
  const load = [keepBusy(port, 2, true), keepBusy(port, 6, false)];
  writeFileSync(
    app,
    `import { existsSync, openSync } from 'node:fs';
    import { setTimeout as sleep } from 'node:timers/promises';
    const at = (name) => new URL(name, import.meta.url);
    const isFirst = (() => { try { return openSync(at('first'), 'wx') > 0; } catch { return false; } })();
    while (!isFirst && !existsSync(at('go'))) await sleep(5);
    if (!isFirst) throw new Error('the second one is broken');
    export default async (request, response) => { await sleep(20); response.end('new'); };`,
  );
  killOne(server.child.pid, 'SIGUSR2');
  await waitFor(async () => (await bodyOf(port)) === 'new', deadlineMs);
  writeFileSync(join(place, 'go'), '');
  await waitFor(() => errors.some((line) => line.includes('SERVE_UPGRADE_FAILED')), deadlineMs);
  for (const each of load) assert.deepEqual((await each.stop()).failures, []);
  assert.equal(await bodyOf(port), String(server.child.pid));
});

test('options that only a restart changes are new after an upgrade; broken ones change nothing', {
  skip,
}, async (t) => {
  ownRuntime(t);
  const app = program(t, 'app.mjs', exported);
  const config = join(folder(t), 'config.json');
  const content = { app, port: 0, host: '127.0.0.1', processes: 1, loops: 1, name: 'shop' };
  const endpoints = { status: 0, health: 0, metrics: 0 };
  writeFileSync(config, JSON.stringify({ ...content, ...endpoints, env: { A: '1' } }));
  const server = await startWith(t, ['--config', config]);
  const { lines, port } = server;
  const portAt = (what: string) => lines.filter((line) => line.startsWith(`${what} at `));
  writeFileSync(config, '{');
  assert.match((await run('upgrade', 'shop')).stderr, /cannot be read as a configuration/);
  writeFileSync(config, JSON.stringify({ ...content, processes: 2, loops: 2 }));
  await waitFor(() => portAt('metrics').length === 1, deadlineMs);
  writeFileSync(
    config,
    JSON.stringify({ ...content, ...endpoints, plan: 'worker', processes: 2, loops: 2 }),
  );
  assert.equal((await run('upgrade', 'shop')).stdout, 'upgraded\n');
  const [found] = await remoteServers();
  assert.equal(found?.status.loops.length, 4);
  for (const what of ['status', 'health', 'metrics']) {
    await waitFor(() => portAt(what).length === 2, deadlineMs);
    assert.equal(portAt(what)[0], portAt(what)[1], 'the same port');
    const url = /http:\S+/.exec(portAt(what)[0] ?? '')?.[0] ?? '';
    assert.equal((await fetch(url)).status, 200);
  }
  assert.equal((await ask(port)).status, 200);
});

test('health says ready all the time', { skip }, async (t) => {
  const server = await startWith(t, ['-P', '1', '-L', '1', '--health', '0', listens]);
  const url = await waitFor(() => {
    const line = server.lines.find((each) => each.startsWith('health at '));
    return line && /:(\d+)\/readyz/.exec(line)?.[1];
  }, deadlineMs);
  const probes = keepBusy(Number(url), 2, false, '/readyz');
  let successor: number | undefined;
  for (let round = 0; round < 3; round += 1) {
    const answers = probes.answers();
    successor = await upgrade(server, successor);
    await waitFor(() => probes.answers() > answers + 20, deadlineMs);
  }
  assert.deepEqual((await probes.stop()).failures, []);
});

test('a Unix socket and TLS go over, and the path stays', { skip }, async (t) => {
  const place = folder(t);
  const app = program(t, 'app.mjs', exported);
  const files = { cert: join(place, 'cert.pem'), key: join(place, 'key.pem') };
  writeFileSync(files.cert, cert);
  writeFileSync(files.key, key);
  const unix = join(place, 'socket');
  const config = join(place, 'config.json');
  const apps = [
    { app, port: 0, host: '127.0.0.1', tls: files, name: 'tls' },
    { app, unix, name: 'unix' },
  ];
  writeFileSync(config, JSON.stringify({ apps, processes: 1, loops: 1 }));
  const server = await startWith(t, ['--config', config]);
  const { child, port } = server;
  const overTls = (): Promise<string> =>
    new Promise((resolve, reject) => {
      get({ port, host: '127.0.0.1', rejectUnauthorized: false, agent: false }, (response) => {
        text(response).then(resolve, reject);
      }).on('error', reject);
    });
  await waitFor(() => server.lines.length === 2, deadlineMs);
  let successor: number | undefined;
  for (let round = 0; round < 3; round += 1) {
    successor = await upgrade(server, successor);
    assert.equal(await bodyOver(unix), String(successor));
    assert.equal(await overTls(), String(successor));
  }
  killOne(child.pid, 'SIGTERM');
  assert.deepEqual(await exitOf(server), [0, null]);
  assert.ok(!existsSync(unix));
});

test('a failed successor removes no path', { skip }, async (t) => {
  const place = folder(t);
  const [unix, config] = [join(place, 'socket'), join(place, 'config.json')];
  const app = program(t, 'app.mjs', exported);
  const other = program(t, 'other.mjs', exported);
  const apps = [
    { app, unix },
    { app: other, port: 0, host: '127.0.0.1' },
  ];
  writeFileSync(config, JSON.stringify({ apps, processes: 1, loops: 1 }));
  const server = await startWith(t, ['--config', config]);
  await waitFor(() => server.lines.length === 2, deadlineMs);
  writeFileSync(other, 'export default (');
  killOne(server.child.pid, 'SIGUSR2');
  await waitFor(
    () => server.errors.some((line) => line.includes('SERVE_UPGRADE_FAILED')),
    deadlineMs,
  );
  assert.equal(await bodyOver(unix), String(server.child.pid));
});

test('without its head a successor ends, and the port is free', { skip }, async (t) => {
  const server = await startWith(t, ['-P', '1', '-L', '1', listens]);
  const { child, port } = server;
  const successor = await upgrade(server, undefined);
  killOne(child.pid, 'SIGKILL');
  await waitFor(() => !isRunning(successor), deadlineMs);
  await waitFor(
    async () => (await ask(port).catch((error: unknown) => Object(error).code)) === 'ECONNREFUSED',
    deadlineMs,
  );
});

test('the head ends with its successor, by its exit code', { skip }, async (t) => {
  const server = await startWith(t, ['-P', '1', '-L', '1', listens]);
  const successor = await upgrade(server, undefined);
  killOne(successor, 'SIGKILL');
  assert.deepEqual(await exitOf(server), [137, null]);
});

test('TERM during an upgrade ends both', { skip }, async (t) => {
  const app = program(t, 'app.mjs', exported);
  const flags = ['-P', '1', '-L', '1', '--port', '0', '--host', '127.0.0.1', app];
  const server = await startWith(t, flags);
  const { child } = server;
  writeFileSync(app, 'await new Promise((resolve) => setTimeout(resolve, 1e6));');
  killOne(child.pid, 'SIGUSR2');
  const [starting] = await waitFor(() => {
    const others = childrenOf(child.pid ?? 0).filter(({ pid }) => !server.pids.includes(pid));
    return others.length > 0 && childrenOf(others[0]?.pid ?? 0).length > 0 && others;
  }, deadlineMs);
  killOne(child.pid, 'SIGTERM');
  assert.deepEqual(await exitOf(server), [0, null]);
  assert.ok(!isRunning(starting?.pid ?? 0));
  assert.deepEqual(server.errors, []);
});

test('TERM after an upgrade waits for requests of the old server as well', { skip }, async (t) => {
  const app = program(
    t,
    'app.mjs',
    `import { existsSync } from 'node:fs';
    export default (request, response) => {
      if (request.url === '/') return response.end(String(process.ppid));
      response.write('began');
      const timer = setInterval(() => {
        if (!existsSync(new URL('go', import.meta.url))) return;
        clearInterval(timer);
        response.end(' and ended');
      }, 5);
    };`,
  );
  const flags = ['-P', '1', '-L', '1', '--port', '0', '--host', '127.0.0.1', app];
  const server = await startWith(t, flags);
  const { child, port } = server;
  const held = await begin(port, '/held');
  killOne(child.pid, 'SIGUSR2');
  await waitFor(async () => (await bodyOf(port)) !== String(child.pid), deadlineMs);
  killOne(child.pid, 'SIGTERM');
  await waitFor(async () => {
    return (await ask(port).catch((error: unknown) => Object(error).code)) === 'ECONNREFUSED';
  }, deadlineMs);
  assert.equal(child.exitCode, null);
  writeFileSync(join(dirname(app), 'go'), '');
  assert.equal(await held.body, 'began and ended');
  assert.deepEqual(await exitOf(server), [0, null]);
});

test('a second TERM after an upgrade ends the open requests at once', { skip }, async (t) => {
  const server = await startWith(t, ['-P', '1', '-L', '1', listens]);
  const { child, port, lines } = server;
  const successor = await upgrade(server, undefined);
  const held = await begin(port, '/?wait=1000000');
  const rejected = assert.rejects(held.body);
  killOne(child.pid, 'SIGTERM');
  await waitFor(() => lines.some((line) => line.startsWith('closing 1 connection')), deadlineMs);
  killOne(child.pid, 'SIGTERM');
  assert.deepEqual(await exitOf(server), [1, null]);
  await rejected;
  assert.ok(!isRunning(successor));
});

test('without the native core an upgrade is refused in one sentence', async (t) => {
  const env = { ...process.env, MANYCORE_NATIVE: 'off' };
  const server = await startWith(t, ['-P', '1', '-L', '1', listens], { env });
  killOne(server.child.pid, 'SIGUSR2');
  const message = await waitFor(
    () => server.errors.find((line) => line.includes('SERVE_UPGRADE_FAILED')),
    deadlineMs,
  );
  assert.match(message, /sockets are handed over by the native core only/);
  assert.equal((await ask(server.port)).status, 200);
});
