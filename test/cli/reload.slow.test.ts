// The configuration of `manycore serve`, read again at each reload.

import assert from 'node:assert/strict';
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type Ended, runCommand } from '../faults/child.js';
import { begin, bodyOf } from '../serve/client.js';
import { folder, skip } from '../serve/served.js';
import { childrenOf, freePort, killOne, waitFor } from '../support/index.js';
import { command, deadlineMs, type Running, startWith } from './serving.js';

/** Answers with what it got from the command; `/held` answers when there is a file `go`. */
const text = `
import { existsSync } from 'node:fs';
if (process.env.FAIL) throw new Error('it does not start');
export default (request, response) => {
  const { ONE, TWO, MINE } = process.env;
  const body = JSON.stringify({ pid: process.pid, args: process.argv.slice(2), ONE, TWO, MINE, flags: process.execArgv });
  if (request.url !== '/held') return response.end(body);
  response.write('held ');
  const timer = setInterval(() => {
    if (!existsSync(new URL('go', import.meta.url))) return;
    clearInterval(timer);
    response.end(body);
  }, 5);
};
`;

interface Answer {
  readonly pid: number;
  readonly args: readonly string[];
  readonly ONE?: string;
  readonly TWO?: string;
  readonly MINE?: string;
  readonly flags: readonly string[];
}

interface Subject extends Running {
  readonly folder: string;
  /** The configuration of the start. */
  readonly content: object;
  /** Replaces the configuration, as editors do. */
  write(content: object | string): void;
  ask(): Promise<Answer>;
  /** Returns the first answer of another process. */
  askOther(pid: number): Promise<Answer>;
  /** Sends HUP, and returns when it has reloaded once more. */
  reload(): Promise<void>;
  /** Sends HUP, and returns the line of the failure. */
  fail(): Promise<string>;
  run(...args: string[]): Promise<Ended>;
  children(): number[];
}

/** Starts a server with a configuration beside the program `app.mjs`. */
async function start(
  t: TestContext,
  given: object = {},
  { flags = [], env = {} }: { flags?: readonly string[]; env?: Record<string, string> } = {},
): Promise<Subject> {
  const root = folder(t);
  const config = join(root, 'config.json');
  writeFileSync(join(root, 'app.mjs'), text);
  const port = await freePort();
  const content = {
    app: 'app.mjs',
    name: 'shop',
    processes: 1,
    loops: 1,
    port,
    maxProcesses: 4,
    ...given,
  };
  const write = (next: object | string): void => {
    const body = typeof next === 'string' ? next : JSON.stringify(next);
    writeFileSync(`${config}.new`, body);
    renameSync(`${config}.new`, config);
  };
  write(content);
  const ownEnv = { XDG_RUNTIME_DIR: folder(t), ...env };
  const running = await startWith(t, ['--config', config, ...flags], {
    env: { ...process.env, ...ownEnv },
  });
  const { child, lines, errors } = running;
  const count = (all: readonly string[], part: string): number =>
    all.filter((line) => line.includes(part)).length;
  const ask = async (): Promise<Answer> => JSON.parse(await bodyOf(port));
  const refusal = 'manycore: the server did not reload: ';
  return {
    ...running,
    port,
    folder: root,
    content,
    write,
    ask,
    askOther: (pid) =>
      waitFor(async () => {
        const found = await ask().catch(() => undefined);
        return found !== undefined && found.pid !== pid ? found : undefined;
      }, deadlineMs),
    reload: async () => {
      const before = count(lines, 'reloaded');
      child.kill('SIGHUP');
      await waitFor(
        () => count(lines, 'reloaded') > before || count(errors, refusal) > 0,
        deadlineMs,
      );
      assert.equal(count(errors, refusal), 0, errors.join('\n'));
    },
    fail: async () => {
      const before = count(errors, refusal);
      child.kill('SIGHUP');
      await waitFor(() => count(errors, refusal) > before, deadlineMs);
      return errors.findLast((line) => line.startsWith(refusal)) ?? '';
    },
    run: (...args) => runCommand(t, [process.execPath, command, ...args], ownEnv),
    children: () => childrenOf(child.pid ?? 0).map(({ pid }) => pid),
  };
}

for (const way of ['HUP', 'manycore reload'] as const) {
  test(`${way} reads the configuration again, and prints the difference`, { skip }, async (t) => {
    const server = await start(t);
    const { content, lines, write, run } = server;
    const held = await begin(server.port, '/held');
    write({ ...content, processes: 2, drainTimeoutMs: 20_000, args: ['--new'], maxAgeMs: 60_000 });
    const done = way === 'HUP' ? server.reload() : run('reload', 'shop');
    await waitFor(async () => (await server.ask()).args[0] === '--new', deadlineMs);
    writeFileSync(join(server.folder, 'go'), '');
    assert.match(await held.body, /"args":\[\]/);
    assert.equal((await done)?.stdout ?? 'reloaded\n', 'reloaded\n');
    await waitFor(() => lines.includes('reloaded'), deadlineMs);
    assert.deepEqual(lines.slice(1), [
      'shop: processes 1 → 2, args [] → ["--new"], maxAgeMs never → 60000, drainTimeoutMs 30000 → 20000',
      'reloaded',
    ]);
    await waitFor(() => server.children().length === 2, deadlineMs);
    write({ ...content, args: ['--new'] });
    await server.reload();
    assert.equal(
      lines.at(-2),
      'shop: processes 2 → 1, maxAgeMs 60000 → never, drainTimeoutMs 20000 → 30000',
    );
    await waitFor(() => server.children().length === 1, deadlineMs);
    await server.reload();
    assert.deepEqual(lines.slice(-2), ['reloaded', 'reloaded']); // no difference, no line
  });
}

test('processes that replace others later have the new options and variables', {
  skip,
}, async (t) => {
  const server = await start(t, { env: { ONE: 'old' } });
  server.write({ ...server.content, env: { ONE: 'new' }, args: ['new'] });
  await server.reload();
  assert.equal(server.lines.at(-2), 'shop: args [] → ["new"], env ONE');
  const { pid, ONE } = await server.ask();
  assert.equal(ONE, 'new');
  killOne(pid, 'SIGKILL');
  const next = await server.askOther(pid);
  assert.deepEqual([next.ONE, next.args], ['new', ['new']]);
});

test('flags of the command win over the file at each reload', { skip }, async (t) => {
  const server = await start(t, { drainTimeoutMs: 1000 }, { flags: ['--max-failures', '7'] });
  server.write({ ...server.content, drainTimeoutMs: 2000, maxFailures: 3 });
  await server.reload();
  assert.equal(server.lines.at(-2), 'shop: drainTimeoutMs 1000 → 2000');
});

test('variables of files are read again; those of the command itself win', { skip }, async (t) => {
  const env = { MINE: 'own' };
  const file = join(folder(t), 'flag.env');
  writeFileSync(file, 'TWO=flag\nMINE=file\n');
  const flags = ['--env-file', file];
  const server = await start(t, { env: { ONE: 'config', MINE: 'config' } }, { flags, env });
  const variables = async (): Promise<unknown[]> => {
    const { ONE, TWO, MINE } = await server.ask();
    return [ONE, TWO, MINE];
  };
  assert.deepEqual(await variables(), ['config', 'flag', 'own']);
  writeFileSync(file, 'ONE=flag\nMINE=other\n');
  await server.reload();
  assert.equal(server.lines.at(-2), 'shop: env ONE TWO');
  assert.deepEqual(await variables(), ['flag', undefined, 'own']);
  const second = join(server.folder, 'config.env');
  writeFileSync(second, 'ONE=file\nTWO=file\n');
  server.write({ ...server.content, envFile: 'config.env' });
  writeFileSync(file, '');
  await server.reload();
  assert.deepEqual(await variables(), ['file', 'file', 'own']);
});

test('flags of Node are read again', { skip }, async (t) => {
  const server = await start(t, { nodeFlags: ['--expose-gc'] });
  assert.ok((await server.ask()).flags.includes('--expose-gc'));
  server.write({ ...server.content, nodeFlags: ['--no-deprecation'] });
  await server.reload();
  assert.equal(server.lines.at(-2), 'shop: nodeFlags ["--expose-gc"] → ["--no-deprecation"]');
  const { flags } = await server.ask();
  assert.ok(flags.includes('--no-deprecation') && !flags.includes('--expose-gc'));
});

for (const [title, change, expected] of [
  ['JSON that ends early', '{', /config\.json cannot be read as a configuration: /],
  ['an unknown key', { drainTimeout: 5 }, /config\.json .*did you mean drainTimeoutMs\?/],
  ['a wrong value', { drainTimeoutMs: 'x' }, /config\.json: drainTimeoutMs is "x": it must be/],
  [
    'a wrong pattern',
    { reloadAt: 'x' },
    /config\.json: reloadAt is "x": it must be a cron pattern/,
  ],
  ['a program that is gone', { app: 'none.mjs' }, /there is no file .*none\.mjs/],
  ['a file of variables that is gone', { envFile: 'none.env' }, /there is no file .*none\.env/],
  ['a certificate that is gone', { tls: { cert: 'a', key: 'b' } }, /config\.json: tls\.cert is /],
  ['one of two apps', { apps: [{}, { name: 'b', port: -1 }] }, /n: apps\[1\] \(b\): port is -1: /],
] as const) {
  test(`${title} refuses the reload, and changes nothing`, { skip }, async (t) => {
    const server = await start(t, { env: { ONE: 'old' } });
    const before = await server.ask();
    const { content } = server;
    server.write(
      typeof change === 'string'
        ? change
        : { ...content, env: { ONE: 'new' }, args: ['new'], ...change },
    );
    assert.match(await server.fail(), expected);
    const { status, stderr } = await server.run('reload');
    assert.equal(status, 2);
    assert.match(stderr, /^manycore: the server did not reload: .*\(SERVE_CONTROL_FAILED\)\n$/);
    assert.match(stderr, expected);
    assert.deepEqual(await server.ask(), before);
    killOne(before.pid, 'SIGKILL');
    const later = await server.askOther(before.pid);
    assert.deepEqual({ ...later, pid: 0 }, { ...before, pid: 0 });
    server.write({ ...content, args: ['right'], env: { ONE: 'old' } });
    await server.run('reload');
    assert.deepEqual((await server.ask()).args, ['right']);
  });
}

test('a reload whose processes fail leaves the old options and variables', { skip }, async (t) => {
  const server = await start(t, { env: { ONE: 'old' } });
  const { pid } = await server.ask();
  server.write({ ...server.content, processes: 2, args: ['new'], env: { ONE: 'new', FAIL: '1' } });
  assert.match(
    await server.fail(),
    /all serve on as they were: the program failed: it does not start/,
  );
  assert.ok(!server.lines.some((line) => line.startsWith('shop: ')));
  killOne(pid, 'SIGKILL');
  const later = await server.askOther(pid);
  assert.deepEqual([later.ONE, later.args], ['old', []]);
  assert.equal(server.children().length, 1);
  server.write({ ...server.content, processes: 2, args: ['new'], env: { ONE: 'new' } });
  await server.run('reload');
  const line = 'shop: processes 1 → 2, args [] → ["new"], env ONE';
  await waitFor(() => server.lines.includes(line), deadlineMs);
});

test('a reload names what a running server cannot change, and applies the rest', {
  skip,
}, async (t) => {
  const server = await start(t, { pidFile: 'a.pid' });
  server.write({
    ...server.content,
    ...{
      name: 'store',
      plan: 'worker',
      placement: 'kernel',
      maxProcesses: 8,
      processes: 6,
      loops: 2,
    },
    ...{ status: 0, health: 0, rescue: false, pidFile: 'b.pid', metrics: 0, affinity: [0] },
    ...{ log: { file: 'a.log' }, args: ['new'] },
  });
  await server.reload();
  const [, applied, kept, forRestart] = server.lines;
  assert.equal(applied, 'shop: args [] → ["new"]');
  const address = '{"host":"127.0.0.1","port":0}';
  const parts = [
    ...[
      'name shop → store',
      'plan event → worker',
      'maxProcesses 4 → 8',
      'placement least-loaded → kernel',
    ],
    ...['rescue true → false', `status none → ${address}`, `health none → ${address}`],
    ...['processes 1 → 6', 'loops 1 → 2', `log none → {"file":"${join(server.folder, 'a.log')}"}`],
    ...['metrics none → 0', 'affinity none → [0]'],
  ];
  const pidFile = `pidFile ${join(server.folder, 'a.pid')} → ${join(server.folder, 'b.pid')}`;
  assert.equal(forRestart, `shop: only a restart applies ${pidFile}`);
  const begins = 'shop: only an upgrade or a restart applies ';
  assert.ok(typeof kept === 'string' && kept.startsWith(begins), kept);
  assert.deepEqual(
    kept
      .slice(begins.length)
      .split(/, (?=[a-z]+ )/i)
      .sort(),
    parts.sort(),
  );
  assert.deepEqual((await server.ask()).args, ['new']);
  await waitFor(() => server.children().length === 1, deadlineMs);
  assert.match((await server.run('list')).stdout, /^shop /m);
});

test('loops and processes change within what the server was started for', { skip }, async (t) => {
  const server = await start(t, { processes: 1, loops: 2, maxProcesses: 2 });
  const loops = async (): Promise<number> => {
    const [status] = JSON.parse((await server.run('status', '--json')).stdout);
    return status.loops.filter(({ state }: { state: string }) => state === 'ready').length;
  };
  assert.equal(await loops(), 2);
  server.write({ ...server.content, processes: 2, loops: 1 });
  await server.reload();
  assert.equal(server.lines.at(-2), 'shop: processes 1 → 2, loops 2 → 1');
  assert.equal(await loops(), 2);
  assert.equal((await server.run('scale', '1')).status, 0);
  server.write({ ...server.content, processes: 2, loops: 1, args: ['new'] });
  await server.reload();
  assert.equal(await loops(), 1); // the size that was asked for last
  server.write(server.content);
  await server.reload();
  assert.equal(server.lines.at(-2), 'shop: processes 2 → 1, loops 1 → 2, args ["new"] → []');
  assert.equal(await loops(), 2);
});

test('another port and another program are served after a reload', { skip }, async (t) => {
  const server = await start(t, { startTimeoutMs: 3000 }); // then the old port is closed
  mkdirSync(join(server.folder, 'next'));
  writeFileSync(join(server.folder, 'next', 'app.mjs'), `export default (q, r) => r.end('next');`);
  const port = await freePort();
  server.write({ ...server.content, app: 'next/app.mjs', port });
  await server.reload();
  const [before, after] = [join(server.folder, 'app.mjs'), join(server.folder, 'next', 'app.mjs')];
  const line = `shop: app ${before} → ${after}, port ${server.port} → ${port}`;
  assert.ok(server.lines.includes(line), server.lines.join('\n'));
  assert.equal(await bodyOf(port), 'next');
  assert.ok(
    server.lines.some((each) => each.startsWith('listening on ') && each.endsWith(`:${port}`)),
  );
  await waitFor(async () => (await bodyOf(server.port).catch(() => '')) === '', deadlineMs);
});

test('each of several apps is found by its name, in any order', { skip }, async (t) => {
  const [one, two, three] = [await freePort(), await freePort(), await freePort()];
  const apps = [
    { name: 'one', port: one, args: ['1'] },
    { name: 'two', port: two, args: ['2'] },
  ];
  const rest = { app: 'app.mjs', processes: 1, loops: 1, maxProcesses: 4 };
  const server = await start(t, { ...rest, name: undefined, port: undefined, apps });
  const argsAt = async (port: number): Promise<string> =>
    JSON.parse(await bodyOf(port)).args.join();
  server.write({ ...rest, apps: [{ ...apps[1], args: ['B'] }, apps[0]] });
  await server.run('reload', 'one');
  assert.deepEqual([await argsAt(one), await argsAt(two)], ['1', '2']);
  await server.run('reload', 'two');
  assert.deepEqual([await argsAt(one), await argsAt(two)], ['1', 'B']);
  await waitFor(() => server.lines.includes('two: reloaded'), deadlineMs);
  server.write({
    ...rest,
    apps: [{ name: 'three', port: three }, { ...apps[0], args: ['A'] }, apps[1]],
  });
  await server.run('reload', String(server.child.pid));
  assert.deepEqual([await argsAt(one), await argsAt(two)], ['A', '2']);
  await waitFor(() => server.lines.includes('one: args ["1"] → ["A"]'), deadlineMs);
  const kept = 'two: only an upgrade or a restart applies apps one two → three one two';
  await waitFor(() => server.lines.includes(kept), deadlineMs);
  server.write({ ...rest, apps: [apps[1]] }); // one that is left out keeps what it had last
  await server.run('reload', 'one');
  assert.deepEqual([await argsAt(one), await argsAt(two)], ['A', '2']);
});

test('reloadAt is set and removed by a reload', { skip }, async (t) => {
  const server = await start(t);
  server.write({ ...server.content, reloadAt: '* * * * * *' });
  await server.reload();
  assert.ok(server.lines.includes('shop: reloadAt none → * * * * * *')); // perhaps reloaded since
  server.write(server.content);
  const removed = 'shop: reloadAt * * * * * * → none';
  await waitFor(() => server.lines.includes(removed), deadlineMs); // by the schedule itself
});

test('--reload-on-change reloads when the configuration changes', { skip }, async (t) => {
  const elsewhere = join(folder(t), 'app.mjs');
  writeFileSync(elsewhere, text);
  const server = await start(t, { app: elsewhere, reloadOnChange: true });
  server.write({ ...server.content, args: ['new'] });
  await waitFor(async () => (await server.ask()).args[0] === 'new', deadlineMs);
  server.write('{');
  await waitFor(
    () => server.errors.some((line) => line.includes('config.json cannot be read')),
    deadlineMs,
  );
});
