// The programs of examples/frameworks, served as they are.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { dirname, join } from 'node:path';
import { json } from 'node:stream/consumers';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { cert, key } from './apps/certificate.js';
import { bodyOf, portOf, secureBody } from './client.js';
import { open, program } from './served.js';

const example = (name: string): string =>
  fileURLToPath(new URL(`../../../examples/frameworks/${name}.js`, import.meta.url));

function echo(port: number, body: object): Promise<unknown> {
  const text = JSON.stringify(body);
  const headers = { 'Content-Type': 'application/json', 'Content-Length': text.length };
  return new Promise((resolve, reject) => {
    const options = { port, host: '127.0.0.1', path: '/echo', method: 'POST', headers };
    const asked = request({ ...options, agent: false }, (response) => {
      json(response).then(resolve, reject);
    });
    asked.on('error', reject);
    asked.end(text);
  });
}

for (const [name, words] of [
  ['express', 'Express'],
  ['fastify', 'Fastify'],
  ['koa', 'Koa'],
  ['hono', 'Hono'],
  ['hono-node', 'Hono'],
] as const) {
  test(`${name}: the example answers, and goes on after a reload`, async (t) => {
    process.env['PORT'] = '0';
    t.after(() => delete process.env['PORT']);
    const server = await open(t, example(name), { processes: 1, loops: 2, port: 0 });
    const port = portOf(server);
    const hello = new RegExp(`^hello from ${words}, process ${server.pids[0]}$`);
    assert.match(await bodyOf(port), hello);
    assert.deepEqual(await echo(port, { a: [1, 2] }), { a: [1, 2] });
    await server.reload();
    assert.match(await bodyOf(port), new RegExp(`^hello from ${words}, process \\d+$`));
  });
}

/** An app that a program exports, of a package that this test finds. */
const exported = (framework: string, text: string): string =>
  `import make from ${JSON.stringify(import.meta.resolve(framework))};\n${text}`;

test('an instance of Fastify that is exported listens, or says why not', async (t) => {
  const app = exported(
    'fastify',
    `const app = make();
    app.get('/', async () => 'exported');
    export default app;`,
  );
  const server = await open(t, program(t, 'app.mjs', app), { processes: 1, loops: 2, port: 0 });
  assert.equal(await bodyOf(portOf(server)), 'exported');
  const broken = program(
    t,
    'app.mjs',
    app.replace('export default', `app.register('nothing');\nexport default`),
  );
  await assert.rejects(open(t, broken, { processes: 1, loops: 1, port: 0 }), {
    code: 'SERVE_START_FAILED',
    message: /plugin/i,
  });
});

test('an app of Koa that is exported speaks TLS', async (t) => {
  const text = `export default new make().use((context) => { context.body = context.protocol; });`;
  const app = program(t, 'app.mjs', exported('koa', text));
  const files = { cert: join(dirname(app), 'cert.pem'), key: join(dirname(app), 'key.pem') };
  writeFileSync(files.cert, cert);
  writeFileSync(files.key, key);
  const server = await open(t, app, { processes: 1, loops: 1, port: 0, tls: files });
  assert.equal(await secureBody(portOf(server), 'http/1.1'), 'https');
});

test('websocket: connections talk to their loops, beside requests', async (t) => {
  process.env['PORT'] = '0';
  t.after(() => delete process.env['PORT']);
  const { WebSocket } = await import('ws');
  const server = await open(t, example('websocket'), { processes: 2, loops: 2 });
  const port = portOf(server);
  const talk = (words: string): Promise<string> =>
    new Promise((resolve, reject) => {
      const socket = new WebSocket(`ws://127.0.0.1:${port}`);
      socket.on('error', reject);
      socket.on('open', () => socket.send(words));
      socket.on('message', (message) => {
        resolve(String(message));
        socket.close();
      });
    });
  const said = await Promise.all(['a', 'b', 'c', 'd'].map(talk));
  assert.deepEqual(said, ['echo a', 'echo b', 'echo c', 'echo d']);
  assert.match(await bodyOf(port), /^hello from ws/);
});
