// Faults caused by clients, the system and the program's owner.
//
// Long (over 400 lines), because each of many faults is a test.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { hasCode } from '../../src/errors.js';
import { serve } from '../../src/serve/index.js';
import { isRunning, killOne, someOf, waitFor, withDeadline } from '../support/index.js';
import { ask, type Begun, begin, bodyOf, keepBusy, portOf } from './client.js';
import { announced, folder, listens, open, program, skip } from './served.js';

const losses = new URL('../../src/cli/report-losses.js', import.meta.url).href;
const entry = fileURLToPath(new URL('../../src/serve/index.js', import.meta.url));

/** Sends bytes as they are; the answer until the server closes. */
async function raw(port: number, bytes: string): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {}); // a reset, after what was answered
  socket.write(bytes);
  let answer = '';
  socket.on('data', (piece: Buffer) => {
    answer += piece;
  });
  const closed = new Promise((resolve) => socket.once('close', resolve)); // whatever was before
  await withDeadline(closed, 30_000, 'the end of the answer');
  return answer;
}

/** Counts what comes. */
const counts = (options: string) => `import { createServer } from 'node:http';
  createServer({ ${options} }, async (request, response) => {
    try {
      let count = 0;
      for await (const piece of request) count += piece.length;
      response.end('got ' + count);
    } catch {
      // the client has disconnected, or sent no body: an unhandled rejection would end the loop
    }
  }).listen(0, '127.0.0.1');`;

test('requests that are two things at once are refused, as on plain Node', async (t) => {
  const port = portOf(await open(t, program(t, 'app.mjs', counts(''))));
  const head = 'POST / HTTP/1.1\r\nHost: here\r\n';
  for (const shape of [
    `${head}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /evil HTTP/1.1\r\n\r\n`,
    `${head}Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!`,
    `${head}Content-Length: -5\r\n\r\n`,
    `${head}Transfer-Encoding: chunked\r\n\r\nzz\r\n`,
    `${head}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n`,
    `${head}X: a\r\n Content-Length: 5\0\r\n\r\nhello`,
    'GET / HTTP/1.1\r\n\r\n',
    'no HTTP at all\r\n\r\n',
  ]) {
    const answer = await raw(port, shape);
    assert.match(answer, /^HTTP\/1\.1 400 /, JSON.stringify(shape));
    assert.doesNotMatch(answer, /evil/);
  }
  const large = await raw(port, `GET / HTTP/1.1\r\nHost: here\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`);
  assert.match(large, /^HTTP\/1\.1 431 /);
  assert.equal(await bodyOf(port), 'got 0');
});

test('clients that are slow with header or body are let go, and others served', async (t) => {
  // So short that a test can wait for them.
  const limits = 'headersTimeout: 1000, requestTimeout: 2000, connectionsCheckingInterval: 50';
  const port = portOf(await open(t, program(t, 'app.mjs', counts(limits))));
  const slow = Promise.all([
    raw(port, 'GET / HTTP/1.1\r\nHost: he'),
    raw(port, 'POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 100\r\n\r\nnot all'),
  ]);
  assert.equal(await bodyOf(port), 'got 0');
  for (const answer of await slow) assert.match(answer, /^HTTP\/1\.1 408 /);
});

test('a client that has closed its half gets its answer', async (t) => {
  const app = program(
    t,
    'app.mjs',
    `import { createServer } from 'node:http';
    const server = createServer((request, response) => {
      request.resume().on('end', () => setTimeout(() => response.end('late'), 100));
    });
    server.httpAllowHalfOpen = true; // Node's own default is to hang up
    server.listen(0, '127.0.0.1');`,
  );
  const socket = connect({
    port: portOf(await open(t, app)),
    host: '127.0.0.1',
    allowHalfOpen: true,
  });
  socket.end('GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n');
  assert.match(await text(socket), /late$/);
});

test('requests that were sent ahead are answered in order', async (t) => {
  const port = portOf(await open(t, listens));
  const get = (path: string, more = '') => `GET ${path} HTTP/1.1\r\nHost: here\r\n${more}\r\n`;
  const answers = await raw(
    port,
    get('/?wait=50') + get('/') + get('/?wait=10', 'Connection: close\r\n'),
  );
  assert.equal(answers.match(/HTTP\/1\.1 200/g)?.length, 3);
  assert.deepEqual(answers.match(/began/g)?.length, 2);
});

test('ten thousand idle connections are held, spread over the loops', async (t) => {
  const server = await open(t, listens, { processes: 2, loops: 2 });
  const port = portOf(server);
  const wanted = 10_000;
  const sockets: Socket[] = [];
  t.after(() => {
    for (const socket of sockets) socket.destroy();
  });
  for (let count = 0; count < wanted; count += 500) {
    const more = Array.from({ length: 500 }, () => connect(port, '127.0.0.1'));
    sockets.push(...more);
    await Promise.all(more.map((socket) => once(socket, 'connect')));
  }
  const open_ = () => server.status().map(({ openConnections }) => openConnections);
  const sum = () => open_().reduce((total, count) => total + count, 0);
  await waitFor(() => sum() === wanted, 20_000, 'all of them in the scoreboard');
  for (const count of open_()) assert.ok(count > wanted / 8, `${open_()}`);
  assert.match(await bodyOf(port), /^\d+:\d+$/);
  for (const socket of sockets) socket.destroy();
  await waitFor(() => sum() === 0);
});

for (const serverNames of [[], ['127.0.0.1']]) {
  test(`without descriptors left connections wait, which is reported once, and are served once some are closed (${serverNames})`, {
    skip,
  }, async (t) => {
    const child = spawn(
      '/bin/sh',
      [
        '-c',
        'ulimit -n 200; exec "$0" "$@"',
        process.execPath,
        '--input-type=module',
        '-e',
        `import { serve } from ${JSON.stringify(entry)};
      import { reportLosses } from ${JSON.stringify(losses)};
      reportLosses('server');
      const { addresses } = await serve(${JSON.stringify(listens)}, {
        ...${JSON.stringify({ processes: 1, loops: 2, serverNames })},
      });
      console.log(addresses[0].port);`,
      ],
      { stdio: ['ignore', 'pipe', 'pipe'] },
    );
    t.after(() => child.kill('SIGKILL'));
    const reports: string[] = [];
    createInterface({ input: child.stderr }).on('line', (report) => reports.push(report));
    const matches = (pattern: RegExp) => reports.flatMap((each) => pattern.exec(each)?.[1] ?? []);
    const begun = () =>
      matches(/^manycore: process (\d+) has no descriptor left \(or no memory\): .*, now 200$/);
    const ended = () => matches(/^manycore: process (\d+) has descriptors again, after [\d.]+ s/);
    const [line] = await once(createInterface({ input: child.stdout }), 'line');
    const port = Number(line);
    const sockets = Array.from({ length: 300 }, () => connect(port, '127.0.0.1'));
    t.after(() => {
      for (const socket of sockets) socket.destroy();
    });
    for (const socket of sockets) socket.on('error', () => {});
    await Promise.all(sockets.map((socket) => once(socket, 'connect')));
    // The router, which is in the supervisor, keeps connections without a server name: it runs out of descriptors first.
    const hasRouter = serverNames.length > 0;
    if (hasRouter)
      await waitFor(() => begun().includes(String(child.pid)), 20_000, 'the report of the router');
    for (const socket of sockets) socket.write('GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n');
    const waiting = bodyOf(port); // behind those that have all descriptors
    let isAnswered = false;
    const answered = waiting.finally(() => {
      isAnswered = true;
    });
    const exhausted = hasRouter ? 2 : 1;
    await waitFor(() => begun().length === exhausted, 20_000, 'the report of the process');
    assert.ok(!isAnswered);
    for (const socket of sockets) socket.destroy();
    assert.match(await withDeadline(answered, 30_000, 'the answer'), /^\d+:\d+$/);
    assert.match(await bodyOf(port), /^\d+:\d+$/);
    await waitFor(() => ended().length === exhausted, 20_000, 'the end of it');
    assert.deepEqual(ended().sort(), begun().sort(), reports.join('\n'));
    assert.equal(new Set(begun()).size, exhausted, reports.join('\n'));
    assert.equal(begun().includes(String(child.pid)), hasRouter);
    assert.equal(reports.length, 2 * exhausted, reports.join('\n'));
  });
}

test('a system that starts no process is a failed start, and a failed reload', async (t) => {
  const { execPath } = process;
  t.after(() => {
    process.execPath = execPath;
  });
  const server = await open(t, listens, { loops: 1 });
  process.execPath = '/no/such/node';
  await assert.rejects(serve(listens), (error: unknown) => {
    assert.ok(hasCode(error, 'SERVE_START_FAILED'));
    assert.match(String(error), /ENOENT/);
    return true;
  });
  await assert.rejects(server.reload(), { code: 'SERVE_START_FAILED' });
  assert.match(await bodyOf(portOf(server)), /^\d+:0$/);
});

/** State of each thread, by proc_pid_status(5). */
function statesOf(pid: number): string[] {
  return readdirSync(`/proc/${pid}/task`).map((thread) => {
    const text = readFileSync(`/proc/${pid}/task/${thread}/status`, 'latin1');
    return /^State:\s+(\w)/m.exec(text)?.[1] ?? '';
  });
}

test('a stopped process gets no connection, and is replaced', { skip }, async (t) => {
  const server = await open(t, listens, { processes: 2, loops: 1, blockedTimeoutMs: 3000 });
  const [stopped = 0] = server.pids;
  process.kill(stopped, 'SIGSTOP');
  // Until then one of its threads may still accept something.
  await waitFor(() => statesOf(stopped).every((state) => state === 'T'));
  for (let asked = 0; asked < 20; asked += 1) {
    assert.ok(!(await bodyOf(portOf(server))).startsWith(`${stopped}:`));
  }
  await waitFor(() => server.pids.length === 2 && !server.pids.includes(stopped));
  assert.ok(!isRunning(stopped));
});

test('a process that is stopped under load is killed long before the deadline of a drain', {
  skip,
}, async (t) => {
  const options = { processes: 2, loops: 1, blockedTimeoutMs: 3000, drainTimeoutMs: 60_000 };
  const server = await open(t, listens, options);
  const [stopped = 0] = server.pids;
  const load = keepBusy(portOf(server), 4, false);
  process.kill(stopped, 'SIGSTOP');
  await waitFor(() => !isRunning(stopped));
  await load.stop();
});

test('a process that is stopped in a callback is not called blocked', { skip }, async (t) => {
  const blocked = announced(t, 'manycore:server:blocked');
  const server = await open(t, listens, { processes: 1, loops: 1, blockedTimeoutMs: 8000 });
  const [stopped = 0] = server.pids;
  const held = await begin(portOf(server), '/?block=60000');
  held.body.catch(() => {}); // it is killed
  await waitFor(() => server.status().some(({ blockedMs }) => blockedMs > 0));
  process.kill(stopped, 'SIGSTOP');
  await waitFor(() => !isRunning(stopped));
  assert.deepEqual(blocked, []);
});

test('a smaller size keeps the process that serves, not the one that starts', async (t) => {
  const root = folder(t);
  const flag = join(root, 'slow');
  const app = program(
    t,
    'app.mjs',
    `import { existsSync } from 'node:fs';
    import { createServer } from 'node:http';
    const server = createServer((request, response) => response.end(String(process.pid)));
    if (existsSync(process.argv[2])) setInterval(() => {}, 1000); // it starts until it is ended
    else server.listen(0, '127.0.0.1');`,
  );
  const server = await open(t, app, { processes: 2, loops: 1, args: [flag] });
  const [first = 0, second = 0] = server.pids;
  writeFileSync(flag, '');
  process.kill(first, 'SIGKILL');
  await waitFor(() => server.status().some(({ state }) => state === 'starting'));
  await server.scale(1);
  assert.deepEqual(server.pids, [second]);
  assert.equal(await bodyOf(portOf(server)), String(second));
});

for (const loops of someOf([2, 1], 1)) {
  test(
    `requests that end their process do not end a server with ${loops} loops in each`,
    {
      skip,
    },
    (t) => survives(t, loops),
  );
}

async function survives(t: TestContext, loops: number): Promise<void> {
  const app = program(
    t,
    'app.mjs',
    `export default (request, response) => {
      if (request.url === '/throw') throw new Error('of a request');
      response.end(String(process.pid));
    };`,
  );
  const server = await open(t, app, { processes: 1, loops, port: 0 });
  const seen = new Set<string>();
  for (let round = 0; round < 6; round += 1) {
    seen.add(await bodyOf(portOf(server)));
    const [before] = server.pids;
    await assert.rejects(bodyOf(portOf(server), '/throw'));
    await waitFor(() => server.pids.length === 1 && server.pids[0] !== before);
  }
  assert.equal(seen.size, 6);
  assert.match(await bodyOf(portOf(server)), /^\d+$/);
}

test('a supervisor that was blocked takes no process for stopped', async (t) => {
  const server = await open(t, listens, { processes: 1, loops: 1, blockedTimeoutMs: 1000 });
  const before = server.pids;
  for (let round = 0; round < 3; round += 1) {
    const endMs = performance.now() + 2500;
    while (performance.now() < endMs);
    await new Promise((resolve) => setTimeout(resolve, 1200)); // the supervisor checks once a second
  }
  assert.deepEqual(server.pids, before);
  assert.ok(server.status().every(({ state, lastExit }) => state !== 'draining' && !lastExit));
});

test('two reloads at once are one after the other, and close() comes after both', async (t) => {
  const server = await open(t, listens, { processes: 2, loops: 1 });
  const before = server.pids;
  const load = keepBusy(portOf(server), 4, false);
  await Promise.all([server.reload(), server.reload()]);
  assert.deepEqual(new Set(server.status().map(({ generation }) => generation)).has(2), true);
  assert.deepEqual((await load.stop()).failures, []);
  const reloading = server.reload();
  reloading.catch(() => {});
  await server.close();
  assert.deepEqual(server.pids, []);
  await waitFor(() => before.every((pid) => !isRunning(pid)));
  await assert.rejects(reloading);
});

test('a version that fails to start leaves the old one in service', async (t) => {
  const app = program(
    t,
    'app.mjs',
    `import { existsSync } from 'node:fs';
    import { createServer } from 'node:http';
    if (existsSync(process.argv[2])) throw new Error('the new version is broken');
    createServer((request, response) => response.end(String(process.pid))).listen(0, '127.0.0.1');`,
  );
  const flag = join(folder(t), 'broken');
  const server = await open(t, app, { processes: 2, loops: 2, args: [flag] });
  const before = server.pids;
  writeFileSync(flag, '');
  await assert.rejects(server.reload(), (error: unknown) => {
    assert.ok(hasCode(error, 'SERVE_START_FAILED'));
    assert.match(String(error), /the new version is broken/);
    return true;
  });
  assert.deepEqual(server.pids, before);
  assert.ok(before.includes(Number(await bodyOf(portOf(server)))));
  rmSync(flag);
  await server.reload();
  assert.ok(!before.includes(Number(await bodyOf(portOf(server)))));
});

test('while others serve well, one that fails again and again is tried on', async (t) => {
  const app = program(
    t,
    'app.mjs',
    `import { existsSync } from 'node:fs';
    import { createServer } from 'node:http';
    if (existsSync(process.argv[2])) process.exit(1);
    createServer((request, response) => response.end(String(process.pid))).listen(0, '127.0.0.1');`,
  );
  const flag = join(folder(t), 'broken');
  const server = await open(t, app, { processes: 2, loops: 1, args: [flag] });
  const failures = announced(t, 'manycore:server:lost');
  await new Promise((resolve) => setTimeout(resolve, 10_500)); // then the other has served well
  writeFileSync(flag, '');
  const [killed = 0, sound] = server.pids;
  process.kill(killed, 'SIGKILL');
  await waitFor(() => failures.length >= 6, 60_000);
  assert.equal(failures.at(-1)?.delayMs, 5000);
  assert.equal(await bodyOf(portOf(server)), String(sound));
  rmSync(flag);
  await waitFor(() => server.pids.length === 2, 30_000);
});

test('a clock that jumps changes nothing', async (t) => {
  const jumping = `let time = 0; Date.now = () => (time = time > 0 ? -1e12 : 4e12);`;
  const app = program(
    t,
    'app.mjs',
    `import { createServer } from 'node:http';
    ${jumping}
    createServer((request, response) => response.end(String(process.pid))).listen(0, '127.0.0.1');`,
  );
  let timeMs = 0;
  t.mock.method(Date, 'now', () => {
    timeMs = timeMs > 0 ? -1e12 : 4e12;
    return timeMs;
  });
  const server = await open(t, app, { processes: { min: 1, max: 2 }, loops: 1 });
  const load = keepBusy(portOf(server), 4, true);
  await server.reload();
  await new Promise((resolve) => setTimeout(resolve, 3000)); // the supervisor checks once a second
  assert.deepEqual((await load.stop()).failures, []);
  for (const { ageMs, blockedMs } of server.status()) {
    assert.ok(ageMs >= 0 && ageMs < 120_000, String(ageMs));
    assert.ok(blockedMs >= 0 && blockedMs < 120_000, String(blockedMs));
  }
});

// Compares with rows of the moment of the kill, which memory that is not shared does not have.
test('a killed process loses what it was doing, and nothing else', { skip }, async (t) => {
  const app = program(
    t,
    'app.mjs',
    `import { existsSync } from 'node:fs';
    import { createServer } from 'node:http';
    createServer((request, response) => {
      response.write('begun');
      const timer = setInterval(() => {
        if (!existsSync(process.argv[2])) return;
        clearInterval(timer);
        response.end();
      }, 20);
    }).listen(0, '127.0.0.1');`,
  );
  const flag = join(folder(t), 'end');
  const server = await open(t, app, { processes: 2, loops: 1, args: [flag] });
  const begun: Begun[] = [];
  const inFlight = () => server.status().map(({ requestsInFlight }) => requestsInFlight);
  while (inFlight().some((count) => count < 2)) begun.push(await begin(portOf(server), '/'));
  const [killed, kept] = server.status();
  killOne(killed?.pid, 'SIGKILL');
  let lost = 0;
  for (const { body } of begun) body.catch(() => (lost += 1));
  await waitFor(() => lost === killed?.requestsInFlight);
  writeFileSync(flag, '');
  await Promise.allSettled(begun.map(({ body }) => body));
  assert.equal(lost, killed?.requestsInFlight);
  assert.equal(begun.length - lost, kept?.requestsInFlight);
});

test('a kept connection is notified when its process drains', async (t: TestContext) => {
  // Ends what it holds when it drains.
  const app = program(
    t,
    'app.mjs',
    `import { subscribe } from 'node:diagnostics_channel';
    import { createServer } from 'node:http';
    createServer((request, response) => {
      if (request.url !== '/held') return response.end(process.pid + ':0');
      response.write('held');
      subscribe('manycore:server:drain', () => response.end());
    }).listen(0, '127.0.0.1');`,
  );
  const server = await open(t, app, { processes: 1, loops: 1 });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.after(() => agent.destroy());
  const port = portOf(server);
  assert.equal((await ask(port, '/', agent)).headers.connection, 'keep-alive');
  const held = request({ port, host: '127.0.0.1', agent, path: '/held' });
  held.end();
  const [response] = await once(held, 'response');
  const reloaded = server.reload();
  assert.equal(await text(response), 'held');
  const last = await ask(port, '/', agent);
  assert.deepEqual([last.status, last.headers.connection], [200, 'close']);
  await reloaded;
  const next = await ask(port, '/', agent);
  assert.deepEqual([next.status, next.headers.connection], [200, 'keep-alive']);
  assert.ok(next.body.startsWith(`${server.pids[0]}:`));
});
