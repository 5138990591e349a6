// Programs that use `listen()` in all its forms, and what they inherit.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { hasCode } from '../../src/errors.js';
import { serve } from '../../src/serve/index.js';
import { runProgram } from '../faults/child.js';
import { freePort, waitFor } from '../support/index.js';
import { bodyOf, portOf } from './client.js';
import { folder, open, program, skip } from './served.js';

test('a program that exports its app may listen by itself later', async (t) => {
  const app = program(
    t,
    'app.cjs',
    `const { createServer } = require('node:http');
    const app = (request, response) => response.end(String(app.isConnected === true));
    app.listen = (...args) => createServer(app).listen(...args);
    module.exports = app;
    setTimeout(() => {
      app.isConnected = true;
      app.listen(Number(process.argv[2]));
    }, 700);`,
  );
  const port = await freePort();
  const server = await open(t, app, { loops: 2, port, args: [String(port)] });
  await waitFor(async () => {
    const bodies: string[] = [];
    for (let asked = 0; asked < 8; asked += 1) bodies.push(await bodyOf(port));
    return bodies.every((body) => body === 'true'); // each loop has a timer of its own
  });
  assert.equal(server.addresses.length, 1);
});

async function isRefused(port: number): Promise<boolean> {
  return await bodyOf(port).then(
    () => false,
    (error: unknown) => Object(error).code === 'ECONNREFUSED',
  );
}

for (const placement of ['least-loaded', 'reuseport'] as const) {
  test(`a port without listeners is closed, and can be opened again: ${placement}`, {
    skip: placement === 'reuseport' && skip,
  }, async (t) => {
    const app = program(
      t,
      'app.mjs',
      `import { createServer } from 'node:http';
      const second = createServer((request, response) => response.end('second'));
      createServer((request, response) => {
        if (request.url === '/close') second.close(() => response.end('closed'));
        else if (request.url === '/open') {
          second.listen(Number(process.argv[2]), '127.0.0.1', () => response.end('open'));
        } else response.end('first');
      }).listen(0, '127.0.0.1');
      second.listen(Number(process.argv[2]), '127.0.0.1');`,
    );
    const port = await freePort();
    const options = { processes: 1, loops: 1, placement, args: [String(port)] };
    const server = await open(t, app, options);
    const first =
      server.addresses
        .map((at) => (typeof at === 'string' ? 0 : at.port))
        .find((at) => at !== port) ?? 0;
    for (let round = 0; round < 2; round += 1) {
      assert.equal(await waitFor(() => bodyOf(port)), 'second');
      assert.equal(await bodyOf(first, '/close'), 'closed');
      await waitFor(() => isRefused(port));
      assert.equal(server.addresses.length, 1);
      assert.equal(await bodyOf(first), 'first');
      assert.equal(await bodyOf(first, '/open'), 'open');
    }
    await server.reload();
    assert.equal(await bodyOf(port), 'second');
  });
}

test('a port that a new version of a program does not listen on is closed', async (t) => {
  const text = (port: number) => `import { createServer } from 'node:http';
    createServer((request, response) => response.end('here')).listen(${port}, '127.0.0.1');`;
  const before = await freePort();
  const app = program(t, 'app.mjs', text(before));
  const server = await open(t, app, { startTimeoutMs: 3000 });
  assert.equal(await bodyOf(before), 'here');
  const after = await freePort();
  writeFileSync(app, text(after));
  await server.reload();
  assert.equal(await bodyOf(after), 'here');
  await waitFor(() => isRefused(before));
  assert.deepEqual(server.addresses, [{ address: '127.0.0.1', port: after, family: 'IPv4' }]);
});

test('programs that an app starts inherit no descriptor of its server', { skip }, async (t) => {
  const app = program(
    t,
    'app.mjs',
    `import { execFile } from 'node:child_process';
    import { createServer } from 'node:http';
    createServer((request, response) => {
      execFile('ls', ['/proc/self/fd'], (error, names) => response.end(names.split('\\n').join()));
    }).listen(0, '127.0.0.1');`,
  );
  const server = await open(t, app, { loops: 1 });
  const { stdout } = await promisify(execFile)('ls', ['/proc/self/fd']);
  assert.equal(await bodyOf(portOf(server)), stdout.split('\n').join()); // as one of ours
});

// Node's own channel has no guard against it.
test('a program that writes nonsense to its supervisor loses its process alone', {
  skip,
}, async (t) => {
  const app = program(
    t,
    'app.mjs',
    `import { readdirSync, readlinkSync, writeSync } from 'node:fs';
    import { createServer } from 'node:http';
    createServer((request, response) => {
      if (request.url === '/') return response.end(String(process.pid));
      for (const fd of readdirSync('/proc/self/fd').map(Number)) {
        try {
          if (readlinkSync('/proc/self/fd/' + fd).startsWith('socket:')) writeSync(fd, 'nonsense'.repeat(8));
        } catch {}
      }
    }).listen(0, '127.0.0.1');`,
  );
  const server = await open(t, app, { processes: 2, loops: 1 });
  const before = server.pids;
  await assert.rejects(bodyOf(portOf(server), '/nonsense'));
  await waitFor(() => server.pids.length === 2 && server.pids.some((pid) => !before.includes(pid)));
  assert.equal(server.pids.filter((pid) => before.includes(pid)).length, 1);
  assert.ok(server.pids.includes(Number(await bodyOf(portOf(server)))));
});

test('a program that listens twice on one port gets the error of plain Node', async (t) => {
  const app = program(
    t,
    'app.mjs',
    `import { createServer } from 'node:http';
    const answer = (request, response) => response.end(String(problem));
    let problem;
    const first = createServer(answer).listen(0, '127.0.0.1', () => {
      createServer(answer).listen(first.address().port, '127.0.0.1').on('error', ({ code }) => {
        problem = code;
      });
    });`,
  );
  const server = await open(t, app, { loops: 2 });
  await waitFor(async () => (await bodyOf(portOf(server))) === 'EADDRINUSE');
  assert.equal(server.addresses.length, 1);
});

test('an address that this user may not have is a failed start with the reason', {
  skip: skip || (process.getuid?.() !== 0 && 'only root can be another user'),
}, async (t) => {
  const root = folder(t);
  chmodSync(root, 0o755);
  const app = join(root, 'app.mjs');
  writeFileSync(app, 'export default (request, response) => response.end();');
  // In a process of its own: the supervisor binds, so it has to be the other user.
  const serveModule = new URL('../../src/serve/index.js', import.meta.url).href;
  const unix = join(root, 'no.sock');
  const { stdout } = await runProgram(
    t,
    `import { serve } from '${serveModule}';
    process.setgid(65534);
    process.setuid(65534);
    const options = { loops: 1, processes: 1, unix: '${unix}' };
    await serve('${app}', options).catch(({ code, message }) => console.log(code, message));`,
  );
  assert.match(stdout, /SERVE_START_FAILED .*EACCES for .*no\.sock/);
});

test('a server that is exported with a listener for its errors may try again', async (t) => {
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  const { port }: { port: number } = Object(other.address());
  const app = program(
    t,
    'app.mjs',
    `import { createServer } from 'node:http';
    const server = createServer((request, response) => response.end('here'));
    server.on('error', () => {
      setTimeout(() => server.listen(${port}, '127.0.0.1'), 100);
    });
    export default server;`,
  );
  const opened = open(t, app, { processes: 1, loops: 1, port, host: '127.0.0.1' });
  setTimeout(() => other.close(), 1000);
  assert.equal(await bodyOf(portOf(await opened)), 'here');
});

test('an address that the system does not give, and a program that is not there', async (t) => {
  const app = program(t, 'app.mjs', 'export default (request, response) => response.end();');
  await assert.rejects(
    serve(app, { loops: 1, host: '203.0.113.1', port: 0 }),
    (error: unknown) => hasCode(error, 'SERVE_START_FAILED') && /EADDRNOTAVAIL/.test(String(error)),
  );
  await assert.rejects(serve('/no/such/app.js'), (error: unknown) => {
    assert.ok(hasCode(error, 'SERVE_START_FAILED'));
    assert.match(String(error), /no\/such\/app\.js/);
    return true;
  });
});

test('a fetch handler gets only what can be a Request', async (t) => {
  const app = `export default { fetch: (request) => new Response(new URL(request.url).pathname) };`;
  const server = await open(t, program(t, 'app.mjs', app), { port: 0 });
  const say = (method: string, path: string, host: string) =>
    bytesOver(
      portOf(server),
      `${method} ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`,
    );
  assert.match(await say('GET', '//here?a', 'some.example:80'), /^HTTP\/1.1 200 [^]*\/\/here/);
  for (const host of ['a/admin?', 'a b', 'u@b#', 'a:b:c']) {
    assert.match(await say('GET', '/', host), /^HTTP\/1.1 400 /, host);
  }
  assert.match(await say('OPTIONS', '*', 'a'), /^HTTP\/1.1 400 /);
  assert.match(await say('TRACE', '/', 'a'), /^HTTP\/1.1 501 /);
});

async function bytesOver(port: number, bytes: string): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  socket.write(bytes);
  return await text(socket);
}

test('a port that a program opens later stays open over a reload', async (t) => {
  const app = program(
    t,
    'app.mjs',
    `import { createServer } from 'node:http';
    const answer = (request, response) => response.end(String(process.pid));
    createServer(answer).listen(0, '127.0.0.1');
    setTimeout(() => createServer(answer).listen(Number(process.argv[2]), '127.0.0.1'), 3000);`,
  );
  const port = await freePort();
  const server = await open(t, app, { processes: 1, loops: 1, args: [String(port)] });
  await waitFor(() => bodyOf(port));
  const [before] = server.pids;
  const refused: unknown[] = [];
  const load = setInterval(() => void bodyOf(port).catch((error) => refused.push(error)), 50);
  await server.reload();
  await waitFor(async () => (await bodyOf(port)) !== String(before));
  clearInterval(load);
  assert.deepEqual(refused, []);
});
