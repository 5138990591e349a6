// `manycore list`, `status`, `reload`, `scale` and `stop`, beside servers that run.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type Ended, runCommand } from '../faults/child.js';
import { begin, bodyOf } from '../serve/client.js';
import { folder, listens, program, skip } from '../serve/served.js';
import { childrenOf, waitFor } from '../support/index.js';
import { command, deadlineMs, type Running, startWith } from './serving.js';

/** Servers and commands of a test, which see nothing of others. */
function ownServers(t: TestContext) {
  const env = { XDG_RUNTIME_DIR: folder(t) };
  return {
    start: (...flags: string[]): Promise<Running> =>
      startWith(t, flags, { env: { ...process.env, ...env } }),
    run: (...args: string[]): Promise<Ended> =>
      runCommand(t, [process.execPath, command, ...args], env),
  };
}

test('a server is shown, as a table and as JSON', { skip }, async (t) => {
  const { start, run } = ownServers(t);
  const none = await run('status');
  assert.deepEqual(none, {
    status: 0,
    stdout: 'no server runs: manycore serve APP starts one\n',
    stderr: '',
  });
  const { child, port, pids } = await start('-P', '1', '-L', '2', listens);
  await bodyOf(port);
  const { stdout } = await run('status');
  const [title, head, ...lines] = stdout.trimEnd().split('\n');
  assert.equal(title, `listens (${listens}) at 127.0.0.1:${port}, served by process ${child.pid}`);
  assert.match(head ?? '', /^ *pid +loop +state +busy .* memory +age +gen/);
  assert.equal(lines.length, 2);
  for (const line of lines) assert.match(line, new RegExp(`^ *${pids[0]} +[01] +ready .* s +0$`));
  const [server] = JSON.parse((await run('status', '--json', String(child.pid))).stdout);
  assert.equal(server.pid, child.pid);
  assert.deepEqual(
    server.loops.map(({ loop, state }: { loop: number; state: string }) => [loop, state]),
    [
      [0, 'ready'],
      [1, 'ready'],
    ],
  );
});

test('a server is reloaded and scaled, within what it was started for', { skip }, async (t) => {
  const { start, run } = ownServers(t);
  const flags = ['-P', '1', '-L', '1', '--max-processes', '2', listens];
  const { child, lines, port, pids } = await start(...flags);
  assert.equal((await run('reload')).stdout, 'reloaded\n');
  assert.ok(!(await bodyOf(port)).startsWith(`${pids[0]}:`));
  assert.equal((await run('scale', '2')).stdout, 'serving from 2 processes\n');
  await waitFor(() => lines.length === 3, deadlineMs);
  assert.deepEqual(lines.slice(1), ['reloaded', 'serving from 2 processes']);
  await waitFor(() => childrenOf(child.pid ?? 0).length === 2, deadlineMs);
  assert.equal((await run('scale', '1..2')).stdout, 'serving from 1 to 2 processes\n');
  const tooMany = await run('scale', '3');
  assert.equal(tooMany.status, 2);
  assert.match(
    tooMany.stderr,
    /^manycore: the server did not scale: processes is 3: it must be at most 2.*\(SERVE_CONTROL_FAILED\)\n$/,
  );
  assert.equal((await run('scale', 'many')).status, 2);
});

test('a reload to a version that does not start prints the cause and the place', {
  skip,
}, async (t) => {
  const { start, run } = ownServers(t);
  const app = program(t, 'app.mjs', `export default (q, r) => r.end('old');`);
  const { child, errors, port } = await start('-P', '1', '-L', '1', '--port', '0', app);
  writeFileSync(app, `null.here();`);
  const { status, stderr } = await run('reload');
  assert.equal(status, 2);
  assert.match(stderr, /^TypeError: .*\n +at .*app\.mjs:1:6/);
  const expected =
    /manycore: the server did not reload: all serve on as they were: the program failed: /;
  assert.match(stderr, expected);
  child.kill('SIGHUP');
  await waitFor(() => errors.some((line) => expected.test(line)), deadlineMs);
  assert.ok(errors.some((line) => /^ +at .*app\.mjs:1:6/.test(line)));
  assert.equal(await bodyOf(port), 'old');
});

test('a command reports that no server or several run, and changes nothing', {
  skip,
}, async (t) => {
  const { start, run } = ownServers(t);
  for (const args of [['reload'], ['scale', '2'], ['status', '1']]) {
    const { status, stderr } = await run(...args);
    assert.equal(status, 2);
    assert.match(stderr, /^manycore: no server of this user runs.*\(SERVE_CONTROL_FAILED\)\n$/);
  }
  const first = await start('-P', '1', '-L', '1', listens);
  const app = program(t, 'app.mjs', `export default (q, r) => r.end(String(process.pid));`);
  const second = await start('-P', '1', '-L', '1', '--port', '0', '--name', 'listens', app);
  for (const [args, way] of [
    [[], 'several servers run: give the name or the pid of one, '],
    [['listens'], 'several servers are called listens: give the pid of one, '],
  ] as const) {
    const { stderr } = await run('reload', ...args);
    assert.ok(stderr.includes(way), stderr);
    for (const { child } of [first, second]) assert.ok(stderr.includes(`, pid ${child.pid} (`));
  }
  assert.equal(await bodyOf(second.port), String(second.pids[0]));
  assert.equal((await run('reload', String(second.child.pid))).stdout, 'reloaded\n');
  assert.notEqual(await bodyOf(second.port), String(second.pids[0]));
  assert.ok((await bodyOf(first.port)).startsWith(`${first.pids[0]}:`));
});

test('servers are listed, and found by their names', { skip }, async (t) => {
  const { start, run } = ownServers(t);
  const shop = join(folder(t), 'shop', 'dist');
  mkdirSync(shop, { recursive: true });
  writeFileSync(join(shop, 'server.mjs'), `export default (q, r) => r.end(process.title);`);
  const first = await start('-P', '2', '-L', '1', '--port', '0', join(shop, 'server.mjs'));
  const second = await start('-P', '1', '-L', '1', '--name', 'other', listens);
  assert.match(await bodyOf(first.port), /^manycore serve shop [01]$/);
  const { stdout } = await run('list');
  const [head, ...lines] = stdout.trimEnd().split('\n');
  assert.match(head ?? '', /^name +pid +processes +loops +busy +open +requests +memory +lost +age/);
  const found = lines.map((line) => line.split(/ +/).slice(0, 4)).sort();
  const of = ({ child }: Running, name: string, count: string): string[] => [
    ...[name, String(child.pid)],
    ...[count, count],
  ];
  assert.deepEqual(found, [of(second, 'other', '1'), of(first, 'shop', '2')]);
  assert.equal(JSON.parse((await run('list', '--json')).stdout).length, 2);
  assert.match((await run('status', 'shop')).stdout, /^shop \(/);
  assert.equal((await run('reload', 'other')).stdout, 'reloaded\n');
  await waitFor(() => second.lines.includes('reloaded'), deadlineMs);
  assert.ok(!first.lines.includes('reloaded'));
  assert.equal((await run('scale', '1', 'shop')).stdout, 'serving from 1 process\n');
  const { stderr } = await run('reload', 'none');
  assert.match(stderr, /^manycore: no server is called none: there is .*shop, pid \d+ /);
});

test('stop ends a server after its requests', { skip }, async (t) => {
  const { start, run } = ownServers(t);
  const { child, port } = await start('-P', '1', '-L', '1', listens);
  const exit = once(child, 'exit');
  const held = await begin(port, '/?wait=1000');
  const stopped = run('stop', 'listens');
  assert.match(await held.body, /^began /);
  assert.equal((await stopped).stdout, 'stopped\n');
  assert.deepEqual(await exit, [0, null]);
  assert.match((await run('stop')).stderr, /^manycore: no server of this user runs/);
});

test('one of several apps is stopped and scaled by its name', { skip }, async (t) => {
  const { start, run } = ownServers(t);
  const config = join(folder(t), 'config.json');
  const apps = [{ name: 'one' }, { name: 'two' }].map((each) => ({ ...each, app: listens }));
  writeFileSync(config, JSON.stringify({ apps, processes: 1, loops: 1, maxProcesses: 2 }));
  const { child } = await start('--config', config);
  await waitFor(async () => (await run('list')).stdout.split('\n').length === 4, deadlineMs);
  const { stderr } = await run('scale', '2');
  assert.match(stderr, /several apps, which have sizes of their own: name one, one or two/);
  assert.equal((await run('scale', '2', 'two')).stdout, 'serving from 2 processes\n');
  const exit = once(child, 'exit');
  assert.equal((await run('stop', 'one')).stdout, 'stopped\n');
  assert.match((await run('list')).stdout, /^two +\d+ +2 /m);
  assert.equal((await run('stop', 'two')).stdout, 'stopped\n');
  assert.deepEqual(await exit, [0, null]);
});
