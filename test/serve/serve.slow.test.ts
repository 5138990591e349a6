// A program on processes × loops, as its clients and its owner see it.
// Long (over 400 lines), because each kind of program and each end of one is a test.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { hasCode } from '../../src/errors.js';
import { serve } from '../../src/serve/index.js';
import { grantedCores } from '../../src/worker/index.js';
import { isRunning, waitFor } from '../support/index.js';
import { begin, bodyOf, bodyOver, keepBusy, portOf } from './client.js';
import { announced, folder, listens, open, program } from './served.js';

/** Asks until so many different loops have answered. */
async function loopsThatAnswer(port: number, count: number): Promise<Set<string>> {
  const found = new Set<string>();
  for (let request = 0; request < 200 && found.size < count; request += 1) {
    const bodies = await Promise.all(Array.from({ length: 8 }, () => bodyOf(port, '/?wait=5')));
    for (const body of bodies) found.add(body.replace('began ', ''));
  }
  return found;
}

test('an unchanged program answers from all loops of all processes', async (t) => {
  const server = await open(t, listens, { processes: 2, loops: 2 });
  const found = await loopsThatAnswer(portOf(server), 4);
  assert.equal(found.size, 4);
  const pids = new Set([...found].map((body) => Number(body.split(':')[0])));
  assert.deepEqual([...pids].sort(), [...server.pids].sort());
});

test('with one loop a program runs in the main thread of its process', async (t) => {
  const server = await open(t, listens, { processes: 2, loops: 1 });
  for (const body of await loopsThatAnswer(portOf(server), 2)) assert.match(body, /:0$/);
});

test('a connection goes to a loop that is not blocked', async (t) => {
  const server = await open(t, listens, { processes: 1, loops: 2 });
  const port = portOf(server);
  const flag = join(folder(t), 'end');
  const blocked = await begin(port, `/?until=${flag}`);
  const others = new Set<string>();
  for (let request = 0; request < 20; request += 1) others.add(await bodyOf(port));
  writeFileSync(flag, '');
  const [, blockedLoop = ''] = (await blocked.body).split(' ');
  assert.equal(others.size, 1);
  assert.ok(!others.has(blockedLoop));
});

test('a CommonJS program that listens when it is the main module does', async (t) => {
  const app = program(
    t,
    'app.cjs',
    `const http = require('node:http');
    const server = http.createServer((request, response) => response.end('commonjs'));
    if (require.main === module) server.listen(0);`,
  );
  const server = await open(t, app);
  assert.equal(await bodyOf(portOf(server)), 'commonjs');
});

const exports = {
  'a request listener': `export default (request, response) => response.end('exported');`,
  'a server': `import { createServer } from 'node:http';
    export default createServer((request, response) => response.end('exported'));`,
  'a fetch handler': `export default { fetch: () => new Response('exported') };`,
};
for (const [what, text] of Object.entries(exports)) {
  test(`a program that exports ${what} is served`, async (t) => {
    const server = await open(t, program(t, 'app.mjs', text), { port: 0 });
    assert.equal(await bodyOf(portOf(server)), 'exported');
  });
}

test('an ES module that nothing calls one is loaded as Node does', async (t) => {
  const text = `export default (request, response) => response.end('exported');`;
  const server = await open(t, program(t, 'app.js', text), { port: 0 });
  assert.equal(await bodyOf(portOf(server)), 'exported');
});

test('a server that the program closes costs no connection its place', async (t) => {
  const app = program(
    t,
    'app.mjs',
    `import { createServer } from 'node:http';
    const first = createServer((request, response) => {
      response.end('closed');
      first.close();
      const end = performance.now() + 200;
      while (performance.now() < end); // connections are placed here meanwhile
    }).listen(0, '127.0.0.1');
    createServer((request, response) => response.end('stays')).listen(0, '127.0.0.1');`,
  );
  const server = await open(t, app, { loops: 1 });
  const ports = server.addresses.map((address) => Number(Object(address).port));
  const asked = Array.from({ length: 5 }, () => bodyOf(ports[0] ?? 0).catch(() => 'lost'));
  await Promise.all(asked);
  assert.equal(await bodyOf(ports[1] ?? 0), 'stays');
  await waitFor(() => server.status().every(({ openConnections }) => openConnections === 0));
});

test('a connection that the program resets is closed in the scoreboard, too', async (t) => {
  const app = program(
    t,
    'app.mjs',
    `import { createServer } from 'node:http';
    createServer((request) => request.socket.resetAndDestroy()).listen(0, '127.0.0.1');`,
  );
  const server = await open(t, app, { loops: 1 });
  await assert.rejects(bodyOf(portOf(server)), { code: 'ECONNRESET' });
  await waitFor(() => server.status().every(({ openConnections }) => openConnections === 0));
});

test('an exported app listens on a Unix socket, whose path goes with the server', async (t) => {
  const app = program(t, 'app.mjs', exports['a request listener']);
  const unix = join(dirname(app), 'socket');
  const server = await open(t, app, { unix });
  assert.deepEqual(server.addresses, [unix]);
  assert.equal(await bodyOver(unix), 'exported');
  await server.reload();
  assert.equal(await bodyOver(unix), 'exported');
  await server.close();
  assert.ok(!existsSync(unix));
});

test('the loops share the cores among the workers of their pools', async (t) => {
  const index = fileURLToPath(new URL('../../src/public.js', import.meta.url));
  const app = program(
    t,
    'app.mjs',
    `import { createServer } from 'node:http';
    import { Pool, run } from ${JSON.stringify(index)};
    const pool = new Pool();
    createServer(async (request, response) => {
      const pid = await run(() => process.pid);
      response.end(pid + ' ' + pool.stats().cores.count);
    }).listen(0, '127.0.0.1');`,
  );
  const cores = grantedCores().count;
  const server = await open(t, app, { processes: 2, loops: Math.max(1, cores) });
  const [pid, count] = (await bodyOf(portOf(server))).split(' ').map(Number);
  assert.ok(pid !== undefined && !server.pids.includes(pid));
  assert.equal(count, 1);
});

test('a program can listen on two ports, and both are shared', async (t) => {
  const app = program(
    t,
    'app.mjs',
    `import { createServer } from 'node:http';
    for (const name of ['first', 'second']) {
      createServer((request, response) => response.end(name)).listen(0, '127.0.0.1');
    }`,
  );
  const server = await open(t, app);
  const ports = server.addresses.map((address) => (typeof address === 'object' ? address.port : 0));
  assert.deepEqual(await Promise.all(ports.map((port) => bodyOf(port))), ['first', 'second']);
});

test('a process that is killed is replaced, and the others serve meanwhile', async (t) => {
  const server = await open(t, listens, { processes: 2, loops: 1 });
  const [killed = 0, other] = server.pids;
  process.kill(killed, 'SIGKILL');
  await waitFor(() => !server.pids.includes(killed));
  for (let request = 0; request < 10; request += 1) {
    assert.match(await bodyOf(portOf(server)), /:0$/);
  }
  await waitFor(() => server.pids.length === 2);
  assert.ok(other !== undefined && server.pids.includes(other));
  assert.deepEqual(
    new Set(server.status().map(({ lastExit }) => lastExit)),
    new Set([undefined, 'killed by SIGKILL']),
  );
});

test('a process that gets SIGTERM drains, and is replaced', async (t) => {
  const server = await open(t, listens, { processes: 2, loops: 2 });
  const [asked = 0] = server.pids;
  const load = keepBusy(portOf(server), 8, false);
  const last = await begin(portOf(server), '/?wait=500');
  process.kill(asked, 'SIGTERM');
  assert.match(await last.body, /^began /);
  await waitFor(() => server.pids.length === 2 && !server.pids.includes(asked));
  assert.deepEqual((await load.stop()).failures, []);
});

test('a process that gets SIGTERM is replaced while it still answers', async (t) => {
  const server = await open(t, listens, { processes: 1, loops: 2, drainTimeoutMs: 20_000 });
  const [asked = 0] = server.pids;
  const long = await begin(portOf(server), '/?wait=600000');
  process.kill(asked, 'SIGTERM');
  await waitFor(async () => Number.parseInt(await bodyOf(portOf(server)), 10) !== asked);
  assert.ok(isRunning(asked));
  process.kill(asked, 'SIGKILL');
  await assert.rejects(long.body);
});

test('the path of a Unix socket that a killed server has left is taken over', async (t) => {
  const path = join(folder(t), 'left.sock');
  const app = program(t, 'app.mjs', `export default (q, r) => r.end('here');`);
  const listening = `require('net').createServer().listen(process.argv[1], () => console.log(1))`;
  const child = spawn(process.execPath, ['-e', listening, path], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(child.stdout, 'data');
  await assert.rejects(open(t, app, { unix: path }), /EADDRINUSE/);
  child.kill('SIGKILL');
  await once(child, 'exit');
  assert.ok(existsSync(path));
  await open(t, app, { unix: path });
  assert.equal(await bodyOver(path), 'here');
});

test('a loop that ends takes its process out of service, and another starts', async (t) => {
  const app = program(
    t,
    'app.mjs',
    `import { createServer } from 'node:http';
    import { threadId } from 'node:worker_threads';
    createServer((request, response) => {
      if (request.url === '/crash') setImmediate(() => { throw new Error('out of order'); });
      else response.end(process.pid + ':' + threadId);
    }).listen(0, '127.0.0.1');`,
  );
  const server = await open(t, app, { processes: 1, loops: 2 });
  const [pid] = server.pids;
  await assert.rejects(bodyOf(portOf(server), '/crash'));
  await waitFor(() => server.pids.length === 1 && server.pids[0] !== pid);
  const body = await waitFor(() => bodyOf(portOf(server)));
  assert.ok(!body.startsWith(`${pid}:`));
  // Waits until the number is free for the process after the next.
  await waitFor(() => !isRunning(pid ?? 0));
  await assert.rejects(bodyOf(portOf(server), '/crash'));
  await waitFor(() => server.status().some(({ lastExit }) => lastExit === 'out of order'));
});

test('a program that would fork with cluster finds itself a worker of node:cluster, with a number of its own', async (t) => {
  const app = program(
    t,
    'app.mjs',
    `import cluster from 'node:cluster';
    import { createServer } from 'node:http';
    if (cluster.isPrimary) cluster.fork();
    else createServer((request, response) => {
      setTimeout(() => response.end(String(cluster.worker.id)), 5);
    }).listen(0, '127.0.0.1');`,
  );
  const server = await open(t, app, { processes: 2, loops: 2 });
  const found = await loopsThatAnswer(portOf(server), 4);
  assert.ok(found.size === 4 && [...found].every((id) => Number(id) > 0));
});

test('a server whose processes end again and again is closed, with the reason', async (t) => {
  const app = program(
    t,
    'app.mjs',
    `import { createServer } from 'node:http';
    import { existsSync } from 'node:fs';
    createServer(() => {}).listen(0, '127.0.0.1');
    setInterval(() => existsSync(process.argv[2]) && process.exit(7), 20);`,
  );
  const flag = join(dirname(app), 'end');
  const server = await open(t, app, { processes: 1, loops: 1, args: [flag] });
  writeFileSync(flag, ''); // one that ends before its server has noted its start is a failed start
  await assert.rejects(server.closed, (error: unknown) => {
    assert.ok(hasCode(error, 'SERVE_FAILED'));
    assert.match(String(error), /5 times in a row, the last one: .*exit code 7/);
    return true;
  });
  assert.deepEqual(server.pids, []);
  await assert.rejects(server.reload(), { code: 'SERVE_CLOSED' });
});

test('a server gives up after `maxFailures`, or never', async (t) => {
  const lost = announced(t, 'manycore:server:lost');
  const app = program(
    t,
    'app.mjs',
    `import { createServer } from 'node:http';
    import { existsSync } from 'node:fs';
    createServer((request, response) => response.end('up')).listen(0, '127.0.0.1');
    setInterval(() => existsSync(process.argv[2]) && process.exit(7), 20);`,
  );
  const flag = join(dirname(app), 'end');
  const size = { processes: 1, loops: 1, args: [flag] };
  const few = await open(t, app, { ...size, maxFailures: 2 });
  writeFileSync(flag, '');
  await assert.rejects(few.closed, /ended 2 times in a row/);
  rmSync(flag);
  const before = lost.length;
  const server = await open(t, app, { ...size, maxFailures: Infinity });
  writeFileSync(flag, '');
  await waitFor(() => lost.length >= before + 6, 60_000);
  rmSync(flag);
  await waitFor(async () => (await bodyOf(portOf(server)).catch(() => '')) === 'up');
});

for (const loops of [1, 2]) {
  test(`a program's handlers of SIGTERM run at its end, ${loops} loops`, async (t) => {
    const app = program(
      t,
      'app.mjs',
      `import { createServer } from 'node:http';
      import { appendFileSync } from 'node:fs';
      const server = createServer((request, response) => response.end('here')).listen(0, '127.0.0.1');
      const timer = setInterval(() => {}, 1000);
      process.on('SIGTERM', () => server.close(() => {
        appendFileSync(process.argv[2], 'ended ');
        clearInterval(timer);
      }));`,
    );
    const log = join(dirname(app), 'log');
    const server = await open(t, app, { loops, args: [log] });
    assert.equal(await bodyOf(portOf(server)), 'here');
    await server.close();
    assert.equal(readFileSync(log, 'utf8'), 'ended '.repeat(loops));
  });
}

test('close() finishes open requests and leaves no process', async (t) => {
  const server = await open(t, listens, { processes: 2, loops: 2 });
  const pids = server.pids;
  const last = await begin(portOf(server), '/?wait=300');
  await server.close();
  assert.match(await last.body, /^began \d+:\d+$/);
  assert.ok(pids.every((pid) => !isRunning(pid)));
  await assert.rejects(bodyOf(portOf(server)), { code: 'ECONNREFUSED' });
});

test("a port that is in use is a failed start with the system's reason", async (t) => {
  const other = createServer().listen(0, '127.0.0.1');
  t.after(() => other.close());
  await new Promise((resolve) => other.once('listening', resolve));
  const address = other.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  await assert.rejects(
    serve(listens, { processes: 1, loops: 2, args: [String(port)] }),
    (error: unknown) => hasCode(error, 'SERVE_START_FAILED') && /EADDRINUSE/.test(String(error)),
  );
  // Express 5 passes the error to the callback of listen(), which programs ignore.
  const swallows = `import { createServer } from 'node:http';
  const server = createServer(() => {}).on('error', () => {});
  server.listen(${port}, '127.0.0.1');`;
  await assert.rejects(serve(program(t, 'app.mjs', swallows), { processes: 1, loops: 1 }), {
    code: 'SERVE_START_FAILED',
    message: new RegExp(`app.mjs does not listen: EADDRINUSE for 127.0.0.1 port ${port}; choose`),
  });
  const exported = program(t, 'app.mjs', `export default (q, r) => r.end('here');`);
  for (const loops of [1, 2]) {
    const start = serve(exported, { processes: 1, loops, port, host: '127.0.0.1' });
    await assert.rejects(start, (error: unknown) => {
      assert.ok(hasCode(error, 'SERVE_START_FAILED'));
      assert.match(String(error), /app.mjs cannot listen: EADDRINUSE for .*; choose another/);
      assert.equal(Object(error).cause, undefined);
      return true;
    });
  }
});

const failures = {
  throws: [`throw new Error('no database');`, /no database/, {}],
  'cannot be parsed': ['const a = 1;\nlet let = 2;', /app\.mjs:2\b/, {}],
  exits: [`process.exit(0);`, /ended before it listened|loop \d has ended/, {}],
  'exports nothing to serve': [
    `export const answer = 42;`,
    /exports nothing that could/,
    { startTimeoutMs: 1500 },
  ],
  'never listens': [
    `setInterval(() => {}, 1000);`,
    /has not listened within/,
    { startTimeoutMs: 1500 },
  ],
} as const;
for (const [what, [text, message, options]] of Object.entries(failures)) {
  for (const loops of [1, 2]) {
    test(`a program that ${what} is a failed start, ${loops} loops`, async (t) => {
      const app = program(t, 'app.mjs', text);
      const start = serve(app, { processes: 2, loops, ...options });
      await assert.rejects(start, (error: unknown) => {
        assert.ok(hasCode(error, 'SERVE_START_FAILED'));
        assert.match(String(error), message);
        return true;
      });
    });
  }
}

test('unknown options are refused', async () => {
  await assert.rejects(serve(''), { code: 'OPTION_INVALID' });
  await assert.rejects(serve(listens, { processes: 0 }), { code: 'OPTION_INVALID' });
  await assert.rejects(serve(listens, { port: -1 }), { code: 'OPTION_INVALID' });
  await assert.rejects(serve(listens, { status: { host: '', port: 1 } }), {
    code: 'OPTION_INVALID',
  });
  for (const untyped of [{ plan: 'fork' }, { host: 1 }, { host: '' }, { unix: true }]) {
    await assert.rejects(serve(listens, Object(untyped)), { code: 'OPTION_INVALID' });
  }
  for (const options of [
    { plan: 'prefork', loops: 2 },
    { plan: 'worker', processes: { min: 1, max: 2 } },
    { plan: 'event', loops: { min: 1, max: 2 } },
    { plan: 'perchild', processes: { min: 1, max: 2 } },
    { processes: { min: 3, max: 2 } },
    { minSpare: 3, maxSpare: 2 },
  ] as const) {
    await assert.rejects(serve(listens, options), { code: 'OPTION_INVALID' });
  }
});
