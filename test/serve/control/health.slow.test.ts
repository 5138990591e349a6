// Probes of a load balancer: what /livez and /readyz answer, and when.

import assert from 'node:assert/strict';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { startServing } from '../../../src/serve/index.js';
import { readiness } from '../../../src/serve/self.js';
import { killOne, waitFor } from '../../support/index.js';
import { ask, begin, bodyOf, portOf } from '../client.js';
import { folder, listens, open, program } from '../served.js';

const serveUrl = new URL('../../../src/serve/public.js', import.meta.url).href;

interface Health {
  readonly status: number;
  readonly reasons: readonly string[];
}

async function readyAt(port = 0): Promise<Health> {
  const { status, body } = await ask(port, '/readyz');
  const { ready, reasons = [] } = JSON.parse(body);
  assert.equal(ready, status === 200);
  return { status, reasons };
}

/** A program with a check, and the file that decides what that says. */
function checked(t: TestContext, check: string) {
  const file = join(folder(t), 'decides');
  const app = program(
    t,
    'app.mjs',
    `import { existsSync } from 'node:fs';
    import { createServer } from 'node:http';
    import { readiness } from ${JSON.stringify(serveUrl)};
    const exists = () => existsSync(${JSON.stringify(file)});
    readiness(${check});
    createServer((request, response) => response.end('served')).listen(0, '127.0.0.1');`,
  );
  return { app, file };
}

test('a server is ready when its processes serve, and alive before and after', async (t) => {
  const app = program(
    t,
    'slow.mjs',
    `import { createServer } from 'node:http';
    import { existsSync } from 'node:fs';
    while (!existsSync(process.argv[2])) await new Promise((resolve) => setTimeout(resolve, 10));
    createServer((request, response) => {
      if (request.url === '/') response.end();
      else response.write('begun');
    }).listen(0, '127.0.0.1');`,
  );
  const go = join(folder(t), 'go');
  const options = { processes: 1, loops: 1, health: 0, args: [go], drainTimeoutMs: 60_000 };
  const { server, started } = startServing(app, options);
  t.after(() => server.close());
  const port = await waitFor(() => server.healthPort);
  assert.deepEqual(await readyAt(port), { status: 503, reasons: ['the server starts'] });
  assert.equal((await ask(port, '/livez')).status, 200);
  writeFileSync(go, '');
  await started;
  assert.equal((await readyAt(port)).status, 200);
  const request = await begin(portOf(server), '/hangs');
  request.body.catch(() => {});
  const closed = server.close();
  assert.deepEqual(await readyAt(port), { status: 503, reasons: ['the server ends'] });
  assert.equal((await ask(port, '/livez')).status, 200);
  request.leave();
  await closed;
  await assert.rejects(ask(port, '/livez'), { code: 'ECONNREFUSED' });
});

for (const [what, check, reason] of [
  ['returns false', '() => exists()', 'a check says no'],
  ['resolves to false', 'async () => exists()', 'a check says no'],
  [
    'throws',
    "() => { if (!exists()) throw new Error('no database'); return true; }",
    'no database',
  ],
  [
    'has not answered yet',
    '() => new Promise((resolve) => setInterval(() => exists() && resolve(true), 10))',
    'a check has not answered yet',
  ],
] as const) {
  test(`a program whose check ${what} is not ready, and serves nevertheless`, async (t) => {
    const { app, file } = checked(t, check);
    const server = await open(t, app, { loops: 1, health: 0 });
    assert.deepEqual(await readyAt(server.healthPort), {
      status: 503,
      reasons: [`process 0: ${reason}`],
    });
    assert.equal(await bodyOf(portOf(server)), 'served');
    writeFileSync(file, '');
    await waitFor(async () => (await readyAt(server.healthPort)).status === 200);
    if (what === 'has not answered yet') return;
    rmSync(file);
    await waitFor(async () => (await readyAt(server.healthPort)).status === 503);
  });
}

test('each loop says for itself, and one that has ended says nothing', async (t) => {
  const { app, file } = checked(t, '() => exists()');
  const server = await open(t, app, { loops: 2, health: 0 });
  const { status, reasons } = await readyAt(server.healthPort);
  assert.deepEqual([status, reasons], [503, ['process 0: a check says no']]);
  writeFileSync(file, '');
  await server.reload();
  await waitFor(async () => (await readyAt(server.healthPort)).status === 200);
});

test('a lost process makes the server unready until another one serves; scaling does not', async (t) => {
  const gate = join(folder(t), 'gate');
  const app = program(
    t,
    'gated.mjs',
    `import { createServer } from 'node:http';
    import { existsSync } from 'node:fs';
    while (existsSync(process.argv[2])) await new Promise((resolve) => setTimeout(resolve, 10));
    createServer((request, response) => response.end()).listen(0, '127.0.0.1');`,
  );
  const options = { processes: 2, loops: 1, maxProcesses: 3, health: 0, args: [gate] };
  const server = await open(t, app, options);
  writeFileSync(gate, '');
  const [first = 0] = server.pids;
  killOne(first, 'SIGKILL');
  await waitFor(async () => (await readyAt(server.healthPort)).status === 503);
  assert.deepEqual((await readyAt(server.healthPort)).reasons, ['1 of 2 processes serve']);
  rmSync(gate);
  await waitFor(async () => (await readyAt(server.healthPort)).status === 200);
  writeFileSync(gate, '');
  const scaled = server.scale(3);
  await waitFor(() => server.status().some(({ state }) => state === 'starting'));
  assert.equal((await readyAt(server.healthPort)).status, 200);
  rmSync(gate);
  await scaled;
  assert.equal((await readyAt(server.healthPort)).status, 200);
  await server.scale(1);
  assert.equal((await readyAt(server.healthPort)).status, 200);
  assert.ok(!existsSync(gate));
});

test('only the two paths are there, and only to read', async (t) => {
  const { healthPort = 0 } = await open(t, listens, { health: { host: '127.0.0.1', port: 0 } });
  assert.equal((await ask(healthPort, '/')).status, 404);
  assert.equal((await ask(healthPort, '/status.json')).status, 404);
  assert.equal((await ask(healthPort, '/readyz', undefined, 'POST')).status, 405);
  assert.equal((await ask(healthPort, '/readyz?verbose', undefined, 'HEAD')).status, 200);
});

test('an address that is taken is a failed start', async (t) => {
  const other = createServer().listen(0, '127.0.0.1');
  t.after(() => other.close());
  await new Promise((resolve) => other.once('listening', resolve));
  const { port }: { port?: number } = Object(other.address());
  await assert.rejects(open(t, listens, { health: port }), {
    code: 'SERVE_CONTROL_FAILED',
    message: /cannot serve the health at .*EADDRINUSE/,
  });
});

test('readiness takes functions, and has no effect outside of a server', () => {
  for (const wrong of [undefined, null, true, 'ready', {}]) {
    assert.throws(() => Reflect.apply(readiness, undefined, [wrong]), { code: 'OPTION_INVALID' });
  }
  readiness(() => assert.fail('called outside of a server'));
});
