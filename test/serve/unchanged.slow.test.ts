// Programs of every shape that `node PROGRAM` runs as a server: each row of the guide's table (docs/guide/serve.md,
// "Unchanged programs") is a row here, and runs in a main thread, in threads, and in two processes.

import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { freePort } from '../support/index.js';
import { bodyOf, bodyOver, portOf } from './client.js';
import { folder, open, program } from './served.js';

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
const isRecent = major > 22 || (major === 22 && minor >= 18);
const needsRecent = !isRecent && 'needs Node 22.18: types are stripped, import.meta.main is there';

interface Shape {
  readonly title: string;
  readonly name: string;
  readonly text: string;
  readonly skip?: string | false;
  readonly args?: readonly string[];
  /** Processes and loops. Default: a main thread, threads, and both in two processes. */
  readonly sizes?: readonly (readonly [processes: number, loops: number])[];
}

const answers = `(request, response) => response.end('answer')`;
const esm = `import { createServer } from 'node:http';\n`;
const cjs = `const { createServer } = require('node:http');\n`;

const shapes: readonly Shape[] = [
  {
    title: 'import.meta.main',
    name: 'app.mjs',
    text: `${esm}if (import.meta.main) createServer(${answers}).listen(0);`,
    skip: needsRecent,
  },
  {
    title: 'import.meta.main behind a first line for the shell, in TypeScript',
    name: 'app.mts',
    text: `#!/usr/bin/env node\n${esm}const port: number = 0;
      if (import.meta.main) createServer(${answers}).listen(port);`,
    skip: needsRecent,
  },
  {
    title: 'require.main === module',
    name: 'app.cjs',
    text: `${cjs}if (require.main === module) createServer(${answers}).listen(0);`,
  },
  {
    title: 'import.meta.url against argv[1]',
    name: 'app.mjs',
    text: `${esm}import { pathToFileURL } from 'node:url';
      if (import.meta.url === pathToFileURL(process.argv[1]).href) createServer(${answers}).listen(0);`,
  },
  {
    title: 'address() straight after listen(0)',
    name: 'app.mjs',
    text: `${esm}const server = createServer((request, response) => {
        response.end(request.socket.localPort === port ? 'answer' : 'other port');
      });
      server.listen(0);
      const { port } = server.address();
      if (!server.listening) throw new Error('does not listen');`,
  },
  {
    title: 'two servers, and an address between them',
    name: 'app.cjs',
    text: `${cjs}const first = createServer(${answers}).listen(0);
      const { port } = first.address();
      const second = createServer(${answers}).listen(0);
      if (second.address().port === port) throw new Error('one port');`,
  },
  {
    title: 'a free port that is looked for first',
    name: 'app.cjs',
    text: `${cjs}const probe = createServer();
      probe.listen(0, () => {
        const { port } = probe.address();
        probe.close(() => createServer(${answers}).listen(port));
      });`,
  },
  {
    title: 'a free port, with await',
    name: 'app.mjs',
    text: `${esm}import { once } from 'node:events';
      const probe = createServer().listen(0, '127.0.0.1');
      await once(probe, 'listening');
      const { port } = probe.address();
      probe.close();
      createServer(${answers}).listen(port, '127.0.0.1');`,
  },
  {
    title: 'one port after the other, until one is free',
    name: 'app.cjs',
    text: `${cjs}const listen = (port) => {
        const probe = createServer().once('error', () => listen(port + 1));
        probe.listen(port, () => probe.close(() => createServer(${answers}).listen(port)));
      };
      listen(Number(process.argv[2]));`,
    args: ['port'],
  },
  {
    title: 'isMainThread, with one loop per process',
    name: 'app.mjs',
    text: `${esm}import { isMainThread } from 'node:worker_threads';
      if (isMainThread) createServer(${answers}).listen(0);`,
    sizes: [
      [1, 1],
      [2, 1],
    ],
  },
  {
    title: 'cluster.isPrimary, which would fork',
    name: 'app.cjs',
    text: `${cjs}const cluster = require('node:cluster');
      if (cluster.isPrimary) cluster.fork();
      else createServer(${answers}).listen(0);`,
  },
  {
    title: 'cluster.isWorker, beside datagrams',
    name: 'app.cjs',
    text: `${cjs}const cluster = require('node:cluster');
      const { createSocket } = require('node:dgram');
      if (cluster.isWorker) {
        createSocket('udp4').bind(0, '127.0.0.1', function () {
          if (this.address().port === 0) throw new Error('no port');
          createServer(${answers}).listen(0);
        }).unref();
      }`,
  },
  {
    title: "process.send('ready')",
    name: 'app.cjs',
    text: `${cjs}createServer(${answers}).listen(0, () => {
        process.send('ready');
        process.send?.('ready', (error) => { if (error) throw error; });
      });`,
  },
  {
    title: 'exclusive: true',
    name: 'app.mjs',
    text: `${esm}createServer(${answers}).listen({ port: Number(process.argv[2]), exclusive: true });`,
    args: ['port'],
  },
  {
    title: 'process.chdir()',
    name: 'app.cjs',
    text: `${cjs}const { existsSync } = require('node:fs');
      process.chdir(__dirname);
      let refusal;
      try { process.chdir('missing'); } catch ({ code }) { refusal = code; }
      const isThere = existsSync('app.cjs') && process.cwd() === require('node:fs').realpathSync(__dirname);
      if (!isThere || refusal !== 'ENOENT') throw new Error(process.cwd() + ' ' + refusal);
      createServer(${answers}).listen(0);`,
  },
  {
    title: 'TypeScript with require',
    name: 'app.cts',
    text: `const http: typeof import('node:http') = require('node:http');
      http.createServer(${answers.replace('request', 'request: unknown').replace('response)', 'response: any)')}).listen(0);`,
    skip: needsRecent,
  },
  {
    title: 'TypeScript without a type of its package',
    name: 'app.ts',
    text: `${esm}const port: number = 0;\ncreateServer(${answers}).listen(port);`,
    skip: needsRecent,
  },
  {
    title: 'top-level await before it listens',
    name: 'app.mjs',
    text: `${esm}await new Promise((resolve) => setTimeout(resolve, 50));\ncreateServer(${answers}).listen(0);`,
  },
];

const allSizes = [
  [1, 1],
  [1, 2],
  [2, 2],
] as const;

async function answersEverywhere(
  t: TestContext,
  { name, text, args = [], sizes = allSizes }: Shape,
): Promise<void> {
  const port = args.length === 0 ? 0 : await freePort();
  const app = program(t, name, text);
  for (const [processes, loops] of sizes) {
    const server = await open(t, app, { processes, loops, args: args.map(() => String(port)) });
    for (let asked = 0; asked < 4 * processes * loops; asked += 1) {
      assert.equal(await bodyOf(portOf(server)), 'answer', `${processes} x ${loops}`);
    }
    await server.close();
  }
}

for (const shape of shapes) {
  test(`unchanged: ${shape.title}`, { skip: shape.skip ?? false }, (t) =>
    answersEverywhere(t, shape),
  );
}

test('unchanged: a Unix socket that others may use', async (t) => {
  const app = program(
    t,
    'app.cjs',
    `${cjs}createServer(${answers}).listen({
      path: process.argv[2], readableAll: true, writableAll: true
    });`,
  );
  const path = join(folder(t), 'socket');
  await open(t, app, { args: [path] });
  assert.equal(await bodyOver(path), 'answer');
  assert.equal(statSync(path).mode & 0o666, 0o666);
});

test('a descriptor that a process does not have is refused in a sentence', async (t) => {
  const app = program(t, 'app.cjs', `${cjs}createServer(${answers}).listen({ fd: 3 });`);
  for (const loops of [1, 2]) {
    await assert.rejects(open(t, app, { loops }), {
      code: 'SERVE_START_FAILED',
      message: /the program failed: listen\(\{ fd: 3 \}\) is not possible/,
    });
  }
});

test('what a program sends to a parent that it has not is dropped with a warning', async (t) => {
  const app = program(
    t,
    'app.cjs',
    `${cjs}let warning = 'none';
    process.on('warning', ({ message }) => { warning = message; });
    process.send({ any: 'message' });
    createServer((request, response) => response.end(warning)).listen(0);`,
  );
  const server = await open(t, app, { loops: 1 });
  assert.match(await bodyOf(portOf(server)), /no parent receives messages/);
});
