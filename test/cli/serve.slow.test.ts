// `manycore serve`, with the signals that its owner sends.
// Long (over 400 lines), because each flag and each signal is a test.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { runCommand } from '../faults/child.js';
import { cert, key } from '../serve/apps/certificate.js';
import { begin, bodyOf, bodyOver, secureBody } from '../serve/client.js';
import { folder, listens, program, skip } from '../serve/served.js';
import {
  childrenOf,
  freePort,
  isRunning,
  someOf,
  waitFor,
  withDeadline,
} from '../support/index.js';
import { command, deadlineMs, type Running, startWith } from './serving.js';

function start(t: TestContext, ...flags: string[]): Promise<Running> {
  return startWith(t, [...flags, listens]);
}

test('serve prints its address, reloads at HUP, and ends at TERM', {
  skip,
}, async (t) => {
  const { child, lines, port, pids } = await start(t, '-P', '1', '-L', '2');
  assert.equal(pids.length, 1);
  assert.match(await bodyOf(port), new RegExp(`^${pids[0]}:[12]$`));
  child.kill('SIGHUP');
  await waitFor(() => lines.includes('reloaded'), deadlineMs);
  assert.ok(!(await bodyOf(port)).startsWith(`${pids[0]}:`));
  child.kill('SIGTTIN');
  await waitFor(() => lines.includes('serving from 2 processes'), deadlineMs);
  child.kill('SIGTTOU');
  await waitFor(() => lines.includes('serving from 1 process'), deadlineMs);
  child.kill('SIGTERM');
  const [exitCode] = await withDeadline(once(child, 'exit'), deadlineMs, 'the end');
  assert.equal(exitCode, 0);
});

test('examples/hello is served as it is', { skip }, async (t) => {
  const app = fileURLToPath(new URL('../../../examples/hello/app.js', import.meta.url));
  const { port } = await startWith(t, ['-P', '1', '-L', '2', '--port', '0', app]);
  assert.match(await bodyOf(port, '/here'), /^hello from process \d+: \/here\n$/);
});

test('flags may stand after the program, and those after -- are its own', { skip }, async (t) => {
  const app = program(
    t,
    'app.mjs',
    'export default (_, response) => response.end(process.argv.slice(2).join());',
  );
  const flags = [app, '-P', '2', 'one', '--port', '0', '--', '--two', '-P', '3'];
  const { port, pids } = await startWith(t, flags);
  assert.equal(pids.length, 2);
  assert.equal(await bodyOf(port), 'one,--two,-P,3');
});

test('a second TERM ends all processes at once', { skip }, async (t) => {
  const { child, port, pids } = await start(t, '-P', '2', '-L', '2');
  const held = await begin(port, '/?wait=60000');
  held.body.catch(() => {});
  child.kill('SIGTERM');
  await waitFor(async () => (await bodyOf(port).catch(() => 'refused')) === 'refused', deadlineMs);
  assert.ok(pids.some((pid) => isRunning(pid)));
  child.kill('SIGTERM');
  const [exitCode] = await withDeadline(once(child, 'exit'), deadlineMs, 'the end');
  assert.equal(exitCode, 1);
  await waitFor(() => pids.every((pid) => !isRunning(pid)), deadlineMs);
});

test('signals that come faster than processes all count', { skip }, async (t) => {
  const config = join(folder(t), 'config.json');
  const options = { app: listens, processes: 1, loops: 1, maxProcesses: 3 };
  writeFileSync(config, JSON.stringify(options));
  const { child, lines } = await startWith(t, ['--config', config]);
  child.kill('SIGTTIN');
  // Two pending signals would become one in the system.
  await waitFor(() => childrenOf(child.pid ?? 0).length === 2, deadlineMs);
  child.kill('SIGTTIN');
  await waitFor(() => lines.includes('serving from 3 processes'), deadlineMs);
});

test('TERM during a reload ends the server, and loses nothing', { skip }, async (t) => {
  const { child, port, pids } = await start(t, '-P', '2', '-L', '1');
  const held = await begin(port, '/?wait=1000');
  child.kill('SIGHUP');
  await waitFor(() => childrenOf(child.pid ?? 0).length > pids.length, deadlineMs);
  const all = childrenOf(child.pid ?? 0).map(({ pid }) => pid);
  child.kill('SIGTERM');
  assert.match(await held.body, /^began /);
  const [exitCode] = await withDeadline(once(child, 'exit'), deadlineMs, 'the end');
  assert.equal(exitCode, 0);
  await waitFor(() => all.every((pid) => !isRunning(pid)), deadlineMs);
});

test('processes answer pending requests and exit when their supervisor is killed', {
  skip,
}, async (t) => {
  const { child, port, pids } = await start(t, '-P', '2', '-L', '1');
  const last = await begin(port, '/?wait=500');
  child.kill('SIGKILL');
  assert.match(await last.body, /^began \d+:0$/);
  await waitFor(() => pids.every((pid) => !isRunning(pid)), deadlineMs);
  await assert.rejects(bodyOf(port), { code: 'ECONNREFUSED' });
});

for (const loops of [1, 2]) {
  test(`a process exits even from an endless callback when its supervisor is killed, ${loops} loops`, {
    skip,
  }, async (t) => {
    const config = join(folder(t), 'config.json');
    const options = { app: listens, processes: 1, loops, drainTimeoutMs: 500 };
    writeFileSync(config, JSON.stringify(options));
    const { child, port, pids } = await startWith(t, ['--config', config]);
    const blocked = await begin(port, '/?block=600000');
    const lost = assert.rejects(blocked.body);
    // Another loop answers meanwhile; a single one cannot.
    if (loops > 1) await waitFor(() => bodyOf(port), deadlineMs);
    child.kill('SIGKILL');
    await waitFor(() => pids.every((pid) => !isRunning(pid)), deadlineMs);
    await lost;
  });
}

test('serve without a program, or with wrong flags, is one sentence', async (t) => {
  const wrong = [
    [['no-such-file.js'], /there is no file .*no-such-file\.js/],
    [['.'], /is a folder: give the program to serve, or --static/],
    [['--static', command, '--port', '0'], /there is no folder .*: give one for static/],
    [
      ['-P', 'two', listens],
      /^manycore: .*whole number, or two of them: 2\.\.8 \(OPTION_INVALID\)\n/,
    ],
    [[listens, '--two'], /^manycore: unknown option '--two' \(OPTION_INVALID\)\n.*after --/],
    [['-P', '0', listens], /processes is 0: it must be/],
    [['-P', '3..2', listens], /processes\.max is 2: it must be/],
    [['--plan', 'fork', listens], /Allowed choices are event, prefork, worker, perchild/],
    [['--status', 'here', listens], /PORT or HOST:PORT/],
    [['--tls-cert', 'a.pem', listens], /--tls-cert and --tls-key/],
    [['--static', '.', listens], /give a program or folders/],
    [['--cgi', '/no/such/folder', '--port', '0'], /no folder \/no\/such\/folder: give one for cgi/],
    [['--tls-cert', 'a.pem', '--tls-key', 'b.pem', listens], /tls\.cert is ".*a\.pem": it must be/],
    [['--config', 'no-such.json'], /no-such\.json cannot be read as a configuration/],
    [['--user', 'nobody-at-all', listens], /user is "nobody-at-all": it must be/],
    [[], /there is nothing to serve/],
  ] as const;
  for (const [flags, message] of someOf(wrong, 5)) {
    const run = await runCommand(t, [process.execPath, command, 'serve', ...flags]);
    assert.equal(run.status, 2);
    assert.match(run.stderr, message);
    assert.doesNotMatch(run.stderr, /\n\s+at /);
  }
});

test('an exported app listens on the address or the Unix socket that is asked for', {
  skip,
}, async (t) => {
  const app = program(t, 'app.mjs', `export default (q, r) => r.end('here');`);
  const flags = ['-P', '1', '-L', '2', app];
  const { lines, port } = await startWith(t, ['--port', '0', '--host', '127.0.0.1', ...flags]);
  assert.equal(lines[0], `listening on 127.0.0.1:${port}`);
  assert.equal(await bodyOf(port), 'here');
  const path = join(folder(t), 'socket');
  const { child, lines: printed } = await startWith(t, ['--unix', path, ...flags]);
  assert.equal(printed[0], `listening on ${path}`);
  assert.equal(await bodyOver(path), 'here');
  child.kill('SIGTERM');
  await withDeadline(once(child, 'exit'), deadlineMs, 'the end');
  assert.ok(!existsSync(path));
});

test('an exported app speaks TLS and HTTP/2', { skip }, async (t) => {
  const app = program(
    t,
    'app.mjs',
    `export default (request, response) => response.end('version ' + request.httpVersion);`,
  );
  const certFile = join(dirname(app), 'cert.pem');
  const keyFile = join(dirname(app), 'key.pem');
  writeFileSync(certFile, cert);
  writeFileSync(keyFile, key);
  const flags = ['-P', '1', '-L', '1', '--port', '0', '--tls-cert', certFile, '--tls-key', keyFile];
  const { port } = await startWith(t, [...flags, '--http2', app]);
  assert.equal(await secureBody(port, 'http/1.1'), 'version 1.1');
  assert.equal(await secureBody(port, 'h2'), 'version 2.0');
});

test('a program that listens by itself has the port in PORT, and options that it cannot follow are refused', {
  skip,
}, async (t) => {
  const app = program(
    t,
    'app.mjs',
    `import { createServer } from 'node:http';
    createServer((request, response) => response.end(process.env.PORT)).listen(process.env.PORT);`,
  );
  const { port } = await startWith(t, ['-P', '1', '-L', '1', '--port', '0', app]);
  assert.equal(await bodyOf(port), '0');
  const pem = join(folder(t), 'any.pem');
  writeFileSync(pem, '');
  const tls = ['--port', '0', '--tls-cert', pem, '--tls-key', pem, app];
  const { status, stderr } = await runCommand(t, [process.execPath, command, 'serve', ...tls]);
  assert.equal(status, 2);
  assert.match(stderr, /tls is for programs that export their app; this one listens by itself/);
  const late = program(
    t,
    'late.mjs',
    `import { createServer } from 'node:http';
    setTimeout(() => createServer(() => {}).listen(0), 500);`,
  );
  for (const [flag, value] of [
    ['--host', '127.0.0.1'],
    ['--unix', join(folder(t), 'socket')],
  ] as const) {
    for (const each of [app, late]) {
      const flags = ['-P', '1', '-L', '1', flag, value, each];
      const ended = await runCommand(t, [process.execPath, command, 'serve', ...flags]);
      assert.match(ended.stderr, new RegExp(`${flag.slice(2)} is for programs that export`));
      assert.equal(ended.stderr.trim().split('\n').length, 1, ended.stderr);
    }
  }
});

test('an error that a program throws after its start, in the main thread or another, is shown once', {
  skip,
}, async (t) => {
  const other = createServer().listen(0);
  t.after(() => other.close());
  await once(other, 'listening');
  const address = other.address();
  const port = typeof address === 'object' ? address?.port : 0;
  for (const [text, message, lines] of [
    [`listen(${port})`, /cannot listen: EADDRINUSE for port/, 1],
    [
      `emit('error', new TypeError('no database'))`,
      /TypeError: no database[^]+the program failed: no database/,
      0,
    ],
  ] as const) {
    for (const loops of ['1', '2']) {
      const app = program(
        t,
        'app.cjs',
        `setTimeout(() => require('node:http').createServer(() => {}).${text}, 100);`,
      );
      const flags = ['-P', '1', '-L', loops, app];
      const { stderr, status } = await runCommand(t, [
        process.execPath,
        command,
        'serve',
        ...flags,
      ]);
      assert.equal(status, 2);
      assert.match(stderr, message);
      assert.doesNotMatch(stderr, /throw er|^Node\.js v/m);
      if (lines > 0) assert.equal(stderr.trim().split('\n').length, lines, stderr);
    }
  }
});

test('a program that handles its errors by itself goes on', { skip }, async (t) => {
  const app = program(
    t,
    'app.cjs',
    `process.on('uncaughtException', ({ message }) => {
      require('node:http').createServer((_, response) => response.end(message)).listen(0);
    });
    setTimeout(() => { throw new Error('handled'); }, 50);`,
  );
  for (const loops of ['1', '2']) {
    const { port } = await startWith(t, ['-P', '1', '-L', loops, app]);
    assert.equal(await bodyOf(port), 'handled');
  }
});

test('an exported app listens on the PORT that it sets, or that a file of variables has', {
  skip,
}, async (t) => {
  const app = program(
    t,
    'app.mjs',
    `process.env.PORT ??= process.argv[2];
    export default (_, response) => response.end(process.env.PORT + ' ' + process.env.WHO);`,
  );
  const port = await freePort();
  const own = await startWith(t, ['-P', '1', '-L', '1', app, String(port)]);
  assert.equal(own.port, port);
  own.child.kill();
  await once(own.child, 'exit');
  const [first, second] = [join(folder(t), '.env'), join(folder(t), '.env.local')];
  writeFileSync(first, `PORT=${port}\nWHO="first"\n`);
  writeFileSync(second, 'WHO=second # the later file counts\n');
  const files = ['--env-file', first, '--env-file', second];
  const filed = await startWith(t, ['-P', '1', '-L', '2', ...files, app]);
  assert.equal(filed.port, port);
  assert.equal(await bodyOf(port), `${port} second`);
  const config = join(folder(t), 'config.json');
  writeFileSync(config, JSON.stringify({ app, processes: 1, loops: 1, envFile: first }));
  filed.child.kill();
  await once(filed.child, 'exit');
  const configured = await startWith(t, ['--config', config]);
  assert.equal(await bodyOf(configured.port), `${port} first`);
  writeFileSync(config, JSON.stringify({ app, envFile: join(folder(t), 'none') }));
  const refused = await runCommand(t, [process.execPath, command, 'serve', '--config', config]);
  assert.match(refused.stderr, /^manycore: there is no file .*none: .* \(CLI_FILE_NOT_FOUND\)\n$/);
  const missing = ['--env-file', join(folder(t), 'none'), app];
  const ended = await runCommand(t, [process.execPath, command, 'serve', ...missing]);
  // Some releases of Node read this flag themselves, wherever it stands.
  assert.match(
    ended.stderr,
    /^manycore: there is no file .*none: .*--env-file.* \(CLI_FILE_NOT_FOUND\)\n$|^.*none: not found\n$/,
  );
  assert.notEqual(ended.status, 0);
});

test('an address that a program listens on later is printed, once', { skip }, async (t) => {
  const app = program(
    t,
    'app.cjs',
    `const { createServer } = require('node:http');
    const later = createServer((_, response) => response.end('later'));
    createServer((_, response) => {
      if (!later.listening) later.listen(0, () => response.end(String(later.address().port)));
      else response.end('listens');
    }).listen(0);`,
  );
  const { lines, port } = await startWith(t, ['-P', '1', '-L', '2', app]);
  const first = new Set<string>();
  for (let asked = 0; asked < 8; asked += 1) first.add(await bodyOf(port));
  first.delete('listens');
  const [later] = first;
  assert.equal(first.size, 1);
  await waitFor(() => lines.some((line) => line.endsWith(`:${later}`)), deadlineMs);
  assert.equal(lines.filter((line) => line.startsWith('listening on')).length, 2);
});

test('an error of a program is shown with its stack, at its start and in a thread', {
  skip,
}, async (t) => {
  const broken = program(t, 'broken.mjs', `\nthrow new Error('at its start');`);
  const { stderr } = await runCommand(t, [process.execPath, command, 'serve', broken]);
  assert.match(
    stderr,
    /Error: at its start\n {4}at file:.*broken\.mjs:2:7[^]*\(SERVE_START_FAILED\)\n$/,
  );
  const app = program(
    t,
    'app.mjs',
    `export default () => {
      throw new Error('of a request');
    };`,
  );
  const flags = ['-P', '1', '-L', '2', '--port', '0', app];
  const { errors, port } = await startWith(t, flags);
  await assert.rejects(bodyOf(port));
  const expected = /Error: of a request\n {4}at .*app\.mjs:2:13[^]* is lost/;
  await waitFor(() => expected.test(errors.join('\n')), deadlineMs);
});

test('folders are served without a program', { skip }, async (t) => {
  const root = folder(t);
  writeFileSync(join(root, 'index.html'), 'here');
  writeFileSync(join(root, 'hello'), '#!/bin/sh\necho Content-Type: text/plain; echo; echo ran');
  chmodSync(join(root, 'hello'), 0o755);
  const flags = ['-P', '1', '-L', '1', '--port', '0'];
  const { port } = await startWith(t, [...flags, '--static', root, '--cgi', root]);
  assert.equal(await bodyOf(port), 'here');
  assert.equal(await bodyOf(port, '/cgi-bin/hello'), 'ran\n');
  assert.equal(await bodyOf(port, '/cgi-bin/nothing'), 'Not Found\n');
});

test('a configuration names apps, each with options of its own', { skip }, async (t) => {
  const first = program(
    t,
    'first.mjs',
    `export default (q, r) => r.end('first ' + process.argv[2]);`,
  );
  const root = dirname(first);
  writeFileSync(join(root, 'second.mjs'), `export default (q, r) => r.end('second');`);
  const config = {
    processes: 1,
    loops: 1,
    port: 0,
    pidFile: join(root, 'pid'),
    apps: [
      { app: 'first.mjs', args: ['told'] },
      { app: 'second.mjs', processes: 2 },
    ],
  };
  writeFileSync(join(root, 'manycore.config.json'), JSON.stringify(config));
  const { child, lines } = await startWith(t, [], { cwd: root });
  await waitFor(() => lines.length === 2, deadlineMs);
  const ports = lines.map((line) => Number(line.split(':').at(-1)));
  const bodies = await Promise.all(ports.map((port) => bodyOf(port)));
  assert.deepEqual(bodies, ['first told', 'second']);
  assert.equal(childrenOf(child.pid ?? 0).length, 3);
  assert.equal(Number(readFileSync(config.pidFile, 'utf8')), child.pid);
  child.kill('SIGTERM');
  await withDeadline(once(child, 'exit'), deadlineMs, 'the end');
  assert.ok(!existsSync(config.pidFile));
});

test('processes start with the configuration that manycore tune writes', {
  skip,
}, async (t) => {
  const app = program(
    t,
    'app.mjs',
    `import { availableParallelism } from 'node:os';
     import { getHeapStatistics } from 'node:v8';
     const { UV_THREADPOOL_SIZE, TUNED } = process.env;
     const isSmall = getHeapStatistics().heap_size_limit < 200 * 2 ** 20;
     const seen = [UV_THREADPOOL_SIZE, TUNED, isSmall, availableParallelism()];
     export default (request, response) => response.end(seen.join());`,
  );
  const config = join(folder(t), 'config.json');
  const content = {
    ...{ app, processes: 1, loops: 1, port: 0 },
    env: { UV_THREADPOOL_SIZE: '7', TUNED: 'by file' },
    nodeFlags: ['--max-old-space-size=100'],
    affinity: [0],
    reasons: { 'env.UV_THREADPOOL_SIZE': 'it was better' },
  };
  writeFileSync(config, JSON.stringify(content));
  const first = await startWith(t, ['--config', config]);
  assert.equal(await bodyOf(first.port), '7,by file,true,1');
  // The environment of the command overrides the file.
  const env = { ...process.env, TUNED: 'by hand' };
  const second = await startWith(t, ['--config', config], { env });
  assert.equal(await bodyOf(second.port), '7,by hand,true,1');
});

test('a configuration with an unknown option is refused in a sentence', async (t) => {
  const config = join(folder(t), 'config.json');
  const refused = [
    [[], /it is an array: it must be an object/],
    [{ app: 5 }, /app is 5: it must be a path/],
    [{ app: listens, pidFile: 5 }, /pidFile is 5: it must be a path/],
    [{ app: listens, envFile: 5 }, /envFile is 5: it must be a path/],
    [{ app: listens, tls: 5 }, /tls is 5: it must be an object/],
    [{ app: listens, tls: { cert: 'a.pem' } }, /tls\.key is undefined: it must be the path/],
    [{ apps: {} }, /apps is an object: it must be an array/],
    [{ apps: [{ app: true }] }, /app is true: it must be a path/],
    [{ app: listens, reloadOnChange: 'yes' }, /reloadOnChange is "yes": it must be/],
    [{ app: listens, rescue: 'no' }, /rescue is "no": it must be/],
    [{ app: listens, port: 'web' }, /port is "web": it must be an integer/],
    [{ app: listens, procesess: 2 }, /there is no "procesess"/],
    [
      { app: listens, processes: '2' },
      /processes is "2": it must be a whole number, or \{ min, max/,
    ],
    [{ app: listens, status: '9000' }, /status is "9000": it must be a port, or \{ host, port/],
    [{ app: listens, env: [] }, /env is an array: it must be an object/],
    [{ app: listens, env: { A: 5 } }, /env\.A is 5: it must be a string/],
    [{ app: listens, nodeFlags: '--x' }, /nodeFlags is "--x": it must be an array of strings/],
    [{ app: listens, affinity: 0 }, /affinity is 0: it must be an array/],
    [{ app: listens, affinity: [-1] }, /affinity is -1: it must be an integer/],
    [{ processes: 1 }, /config\.json has nothing to serve/],
  ] as const;
  for (const [content, message] of someOf(refused, 5)) {
    writeFileSync(config, JSON.stringify(content));
    const ended = await runCommand(t, [process.execPath, command, 'serve', '--config', config]);
    assert.equal(ended.status, 2);
    assert.match(ended.stderr, message);
    assert.doesNotMatch(ended.stderr, /^ +at /m);
  }
});

test('a second server that cannot start leaves the pid file of the first unchanged', {
  skip,
}, async (t) => {
  const pidFile = join(folder(t), 'pid');
  const app = program(t, 'app.mjs', `export default (q, r) => r.end('first');`);
  const flags = ['-P', '1', '-L', '1', '--pid-file', pidFile, app];
  const { child, port } = await startWith(t, ['--port', '0', ...flags]);
  await waitFor(() => existsSync(pidFile), deadlineMs);
  const second = [process.execPath, command, 'serve', '--port', String(port), ...flags];
  assert.match((await runCommand(t, second)).stderr, /EADDRINUSE/);
  assert.equal(Number(readFileSync(pidFile, 'utf8')), child.pid);
});

test('a pid file that cannot be written gives one sentence, and nothing is served', {
  skip,
}, async (t) => {
  const app = program(t, 'app.mjs', `export default (q, r) => r.end('here');`);
  const flags = ['-P', '1', '-L', '1', '--port', '0', '--pid-file', '/proc/nobody/pid', app];
  const ended = await runCommand(t, [process.execPath, command, 'serve', ...flags]);
  assert.match(ended.stderr, /^manycore: the pid file cannot be written: ENOENT.*OPTION_INVALID/);
  assert.doesNotMatch(ended.stderr, /^ +at /m);
});

test('apps of a configuration share a port by the names of their clients', { skip }, async (t) => {
  const port = await freePort();
  const first = program(t, 'first.mjs', `export default (q, r) => r.end('first');`);
  const root = dirname(first);
  writeFileSync(join(root, 'second.mjs'), `export default (q, r) => r.end('second');`);
  const apps = [
    { app: 'first.mjs', serverNames: ['first.example'] },
    { app: 'second.mjs', serverNames: ['127.0.0.1'] },
  ];
  const config = { processes: 1, loops: 1, port, apps };
  writeFileSync(join(root, 'manycore.config.json'), JSON.stringify(config));
  const { child, lines } = await startWith(t, [], { cwd: root });
  await waitFor(() => lines.length === 2, deadlineMs);
  assert.deepEqual(lines, [
    `listening on [::]:${port} for first.example`,
    `listening on [::]:${port} for 127.0.0.1`,
  ]);
  assert.equal(await bodyOf(port), 'second');
  child.kill('SIGHUP');
  await waitFor(() => lines.length === 4, deadlineMs);
  const names = ['first: reloaded', 'second: reloaded'];
  assert.deepEqual(new Set(lines.slice(2)), new Set(names));
});

test('a status address that is in use gives one sentence', { skip }, async (t) => {
  const other = createServer().listen(0, '127.0.0.1');
  t.after(() => other.close());
  await once(other, 'listening');
  const { port } = Object(other.address());
  const flags = ['-P', '1', '-L', '1', '--status', String(port), listens];
  const { stderr } = await runCommand(t, [process.execPath, command, 'serve', ...flags]);
  assert.match(stderr, /^manycore: cannot serve the status at .*EADDRINUSE.*\n$/);
});

test('a change of the program is served, and one that does not start is not', {
  skip,
}, async (t) => {
  const app = program(t, 'app.mjs', `export default (request, response) => response.end('old');`);
  const flags = ['-P', '1', '-L', '1', '--port', '0', '--reload-on-change', app];
  const { port, lines, errors } = await startWith(t, flags);
  writeFileSync(app, `throw new Error('half written');`);
  await waitFor(
    () => errors.some((line) => /^manycore: the server did not reload/.test(line)),
    deadlineMs,
  );
  assert.equal(await bodyOf(port), 'old');
  writeFileSync(app, `export default (request, response) => response.end('new');`);
  await waitFor(() => lines.includes('reloaded'), deadlineMs);
  assert.equal(await bodyOf(port), 'new');
});

test('a change while the program starts is served', { skip }, async (t) => {
  const app = program(
    t,
    'app.mjs',
    `import { writeFileSync } from 'node:fs';
     import { fileURLToPath } from 'node:url';
     const next = "export default (request, response) => response.end('new');";
     writeFileSync(fileURLToPath(import.meta.url), next);
     export default (request, response) => response.end('old');`,
  );
  const flags = ['-P', '1', '-L', '1', '--port', '0', '--reload-on-change', app];
  const { port, lines } = await startWith(t, flags);
  await waitFor(() => lines.includes('reloaded'), deadlineMs);
  assert.equal(await bodyOf(port), 'new');
});

test('a file that the program writes when it starts reloads a few times only', {
  skip,
}, async (t) => {
  const answering = (answer: string): string => `
    import { writeFileSync } from 'node:fs';
    writeFileSync(new URL('./data.db', import.meta.url), String(process.pid));
    export default (request, response) => response.end('${answer}');`;
  const app = program(t, 'app.mjs', answering('old'));
  const flags = ['-P', '1', '-L', '1', '--port', '0', '--reload-on-change', app];
  const { port, lines, errors } = await startWith(t, flags);
  const isLeftOut = (line: string): boolean => /data\.db changes whenever .* starts/.test(line);
  await waitFor(() => errors.some(isLeftOut), deadlineMs);
  writeFileSync(app, answering('new'));
  await waitFor(async () => (await bodyOf(port)) === 'new', deadlineMs);
  const reloads = lines.filter((line) => line === 'reloaded').length;
  assert.ok(reloads <= 5, String(reloads));
});

test('sockets come from systemd, which is notified of the state', { skip }, async (t) => {
  const opened = createServer().listen(0, '127.0.0.1');
  t.after(() => opened.close());
  await once(opened, 'listening');
  const { port }: { port?: number } = Object(opened.address());
  const fd: number = Object(Reflect.get(opened, '_handle')).fd;
  const notifySocket = join(folder(t), 'notify');
  // systemd-notify(1)'s other end, in the language that has datagrams over Unix sockets.
  const listener = spawn(
    'python3',
    [
      '-uc',
      `import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
print('bound')
while True: print(s.recv(4096).decode().replace(chr(10), ' '))`,
      notifySocket,
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  t.after(() => listener.kill('SIGKILL'));
  const words: string[] = [];
  createInterface({ input: listener.stdout }).on('line', (line) => words.push(line));
  await waitFor(() => words.includes('bound'));
  // LISTEN_PID must be the pid of the process itself: a shell has it before `exec`.
  const flags = ['-P', '1', '-L', '1', listens, String(port)];
  const command_ = `LISTEN_FDS=1 LISTEN_PID=$$ exec "$0" "$@"`;
  const child = spawn('/bin/sh', ['-c', command_, process.execPath, command, 'serve', ...flags], {
    stdio: ['ignore', 'pipe', 'inherit', fd],
    env: { ...process.env, NOTIFY_SOCKET: notifySocket, WATCHDOG_USEC: '200000' },
  });
  t.after(() => child.kill('SIGKILL'));
  await waitFor(() => words.some((line) => line.startsWith('READY=1 STATUS=serving')), deadlineMs);
  const watchdogs = () => words.filter((line) => line === 'WATCHDOG=1').length;
  await waitFor(() => watchdogs() > 1, deadlineMs);
  opened.close(); // the port is still open in the server
  assert.match(await bodyOf(port ?? 0), /^\d+:0$/);
  child.kill('SIGHUP');
  await waitFor(() => words.filter((line) => line.startsWith('READY=1')).length === 2, deadlineMs);
  assert.ok(words.some((line) => /^RELOADING=1 MONOTONIC_USEC=\d+$/.test(line)));
  child.kill('SIGTERM');
  await waitFor(() => words.includes('STOPPING=1'), deadlineMs);
});
