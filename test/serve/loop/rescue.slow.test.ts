// Kept-alive connections leave a loop that is blocked, and none of their requests is lost or answered twice.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { ServedApp, ServeOptions } from '../../../src/serve/index.js';
import {
  killOne,
  openDescriptors,
  random,
  seeded,
  waitFor,
  withDeadline,
} from '../../support/index.js';
import { portOf } from '../client.js';
import { allKinds, type Sent, sendExactly } from '../exact-client.js';
import { block, type Client, keptAtOneLoop, keptClient, total } from '../kept-clients.js';
import { folder, open, program, skip } from '../served.js';

const exact = fileURLToPath(new URL('../apps/exact.js', import.meta.url));
const serveModule = new URL('../../../src/serve/index.js', import.meta.url).href;
/** Time of the random runs, in seconds; some hundreds for a soak. */
const runS = Number(process.env['MANYCORE_RESCUE_S'] ?? 4);
const shapes = [
  { processes: 1, loops: 2 },
  { processes: 2, loops: 1 },
  { processes: 2, loops: 2 },
] as const;

/** Blocks the loop of `heavy` until `end`. */
async function blockUntil(t: TestContext, server: ServedApp, heavy: Client) {
  const file = join(folder(t), 'end');
  const { answer } = await block(server, heavy, `until=${file}`);
  return { answer, end: () => writeFileSync(file, '') };
}

/** Fails for an answer that waits for the blocked loop. */
const inTime = (answer: Promise<string>): Promise<string> =>
  withDeadline(answer, 20_000, 'an answer while the loop is blocked');

for (const shape of shapes) {
  const name = `${shape.processes} × ${shape.loops}`;
  test(`${name}: clients of a blocked loop are answered by another one`, { skip }, async (t) => {
    const server = await open(t, exact, { ...shape, port: 0 });
    const { heavy, others, home } = await keptAtOneLoop(t, portOf(server), 3);
    const open_ = total(server, 'openConnections');
    const placed = total(server, 'connections');
    const blocked = await blockUntil(t, server, heavy);
    for (const client of others) assert.notEqual(await inTime(client()), home);
    blocked.end();
    assert.equal(await blocked.answer, home);
    // More where the machine has no core for a loop that is not blocked.
    assert.ok(total(server, 'takenAway') >= others.length);
    await waitFor(() => total(server, 'takenAway') === total(server, 'takenOver'));
    assert.equal(total(server, 'connections'), placed, 'they are no new connections');
    await waitFor(() => total(server, 'openConnections') === open_);
    const ends = await waitFor(async () => {
      const found = JSON.parse(await keptClient(t, portOf(server))('/ends'));
      return found.loop === home && found.clean >= others.length && found;
    });
    assert.deepEqual({ failed: ends.failed, refused: ends.refused }, { failed: 0, refused: 0 });
  });

  test(`${name}: no request is lost, answered twice or by another's answer`, {
    skip,
  }, async (t) => {
    process.env['MANYCORE_RESCUE'] = 'eager';
    t.after(() => delete process.env['MANYCORE_RESCUE']);
    const { seed } = random(t);
    const server = await open(t, exact, { ...shape, port: 0 });
    const sent: Sent = { kinds: allKinds, heavyShare: 0.05, answered: 0, left: 0 };
    const endMs = performance.now() + runS * 1000;
    const port = portOf(server);
    const clients = Array.from({ length: 100 }, (_, client) =>
      sendExactly(port, `c${client}`, seeded(seed + client), sent, () => performance.now() > endMs),
    );
    await Promise.all(clients);
    await waitFor(() => total(server, 'openConnections') === 0);
    t.diagnostic(`${JSON.stringify(sent)}, taken ${total(server, 'takenAway')}`);
    assert.ok(total(server, 'takenAway') > 0);
    assert.equal(total(server, 'takenAway'), total(server, 'takenOver'));
    assert.ok(total(server, 'requests') >= sent.answered);
    assert.ok(total(server, 'requests') <= sent.answered + sent.left);
    assert.equal(server.status().length, shape.processes * shape.loops);
  });
}

test('reloads lose no request while connections change their loops', { skip }, async (t) => {
  process.env['MANYCORE_RESCUE'] = 'eager';
  t.after(() => delete process.env['MANYCORE_RESCUE']);
  const { seed } = random(t);
  const server = await open(t, exact, { processes: 2, loops: 1, port: 0 });
  // Requests behind an answer that closes the connection are lost in every drain (docs/design/serve.md).
  const sent: Sent = { kinds: ['get', 'post', 'pieces'], heavyShare: 0.05, answered: 0, left: 0 };
  let isOver = false;
  const port = portOf(server);
  const clients = Array.from({ length: 40 }, (_, client) =>
    sendExactly(port, `c${client}`, seeded(seed + client), sent, () => isOver),
  );
  const all = Promise.all(clients);
  for (let count = 0; count < 3; count += 1) await Promise.race([server.reload(), all]);
  isOver = true;
  await all;
  assert.ok(sent.answered > 0);
});

test('a process that is killed takes no answer of another one with it', { skip }, async (t) => {
  process.env['MANYCORE_RESCUE'] = 'eager';
  t.after(() => delete process.env['MANYCORE_RESCUE']);
  const { seed } = random(t);
  const server = await open(t, exact, { processes: 2, loops: 1, port: 0 });
  const sent: Sent = { kinds: ['get', 'post'], heavyShare: 0.05, answered: 0, left: 0 };
  let isOver = false;
  const port = portOf(server);
  const resets: unknown[] = [];
  const clients = Array.from({ length: 20 }, async (_, client) => {
    while (!isOver) {
      const name = `c${client}`;
      await sendExactly(port, name, seeded(seed + client), sent, () => isOver).catch((error) => {
        assert.match(error.message, /ECONNRESET|EPIPE|has closed the connection/);
        resets.push(error);
      });
    }
  });
  await waitFor(() => total(server, 'takenOver') > 0);
  const [pid] = server.pids;
  killOne(pid, 'SIGKILL');
  await waitFor(() => server.pids.length === 2 && !server.pids.includes(pid ?? 0));
  const { answered } = sent;
  await waitFor(() => sent.answered > answered + 100);
  isOver = true;
  await Promise.all(clients);
  assert.ok(resets.length <= 2 * clients.length, 'connections of the killed process alone');
});

test('a connection that has moved moves again, and again', { skip }, async (t) => {
  const server = await open(t, exact, { processes: 1, loops: 2, port: 0 });
  const { heavy, others, home } = await keptAtOneLoop(t, portOf(server), 3);
  const { heavy: otherHeavy, home: otherHome } = await waitFor(async () => {
    const found = await keptAtOneLoop(t, portOf(server), 1);
    return found.home !== home && found;
  });
  for (let round = 0; round < 4; round += 1) {
    const [from, to] = round % 2 === 0 ? [home, otherHome] : [otherHome, home];
    const blocked = await blockUntil(t, server, round % 2 === 0 ? heavy : otherHeavy);
    for (const client of others) {
      assert.equal(await inTime(client()), to, `round ${round}, from ${from}`);
    }
    blocked.end();
    await blocked.answer;
  }
});

test('without descriptors left, connections stay at their loop, and none is lost', {
  skip,
}, async (t) => {
  const text = `ulimit -n 200; exec "$0" --input-type=module -e "$1" "$2"`;
  const source = `import { serve } from ${JSON.stringify(serveModule)};
    const server = await serve(process.argv[1], { processes: 1, loops: 2, port: 0 });
    const sum = (key) => server.status().reduce((total, loop) => total + loop[key], 0);
    console.log(server.addresses[0].port, server.pids[0]);
    process.stdin.on('data', () => console.log(sum('takenAway'), sum('takenOver'), server.pids[0]));`;
  const child = spawn('/bin/sh', ['-c', text, process.execPath, source, exact], {
    env: { ...process.env, MANYCORE_RESCUE: 'eager' },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  t.after(() => child.kill('SIGKILL'));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const numbers = async (): Promise<number[]> => {
    const { value } = await lines.next();
    return String(value).split(' ').map(Number);
  };
  const [port = 0, pid = 0] = await numbers();
  const { seed } = random(t);
  const sent: Sent = { kinds: ['get', 'post'], heavyShare: 0.2, answered: 0, left: 0 };
  let isOver = false;
  t.after(() => {
    isOver = true;
    killOne(pid, 'SIGKILL'); // a request that is lost would hold up its drain
  });
  const clients = Array.from({ length: 10 }, (_, client) =>
    sendExactly(port, `c${client}`, seeded(seed + client), sent, () => isOver),
  );
  const all = Promise.all(clients);
  const idle: Socket[] = [];
  t.after(() => {
    for (const socket of idle) socket.destroy();
  });
  const status = async (): Promise<number[]> => {
    child.stdin.write('.');
    return numbers();
  };
  const until = (condition: () => unknown) => Promise.race([waitFor(condition), all]);
  await until(async () => ((await status())[0] ?? 0) > 0); // rescued
  const connectIdle = () => idle.push(connect(port, '127.0.0.1').on('error', () => {}));
  const answer = (count: number) => {
    const { answered } = sent;
    return until(() => sent.answered >= answered + count);
  };
  while (openDescriptors(pid).length < 170) {
    connectIdle();
    await answer(1);
  }
  // At each number of free ones, down to none: a pair fails first, or the second descriptor of a connection.
  for (let count = 0; count < 40; count += 1) {
    connectIdle();
    await answer(10);
  }
  await until(() => openDescriptors(pid).length >= 200);
  await answer(300);
  for (const socket of idle) socket.destroy();
  const [before = 0] = await status();
  await until(async () => ((await status())[0] ?? 0) > before); // rescued again
  isOver = true;
  await all;
  const [takenAway, takenOver, last] = await status();
  assert.equal(takenAway, takenOver);
  assert.equal(last, pid, 'its process has not ended');
});

/** System calls of a thread while `act` runs, by name; `undefined` where nothing may trace it. */
async function callsOf(
  t: TestContext,
  thread: number,
  act: () => Promise<void>,
): Promise<Map<string, number> | undefined> {
  const file = join(folder(t), 'calls');
  const strace = spawn('strace', ['-p', String(thread), '-o', file], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const ended = new Promise((resolve) => strace.once('exit', resolve).once('error', resolve));
  const first = await Promise.race([once(strace.stderr, 'data'), ended]);
  if (!Array.isArray(first) || !String(first[0]).includes('attached')) return undefined;
  await act();
  strace.kill('SIGINT');
  await ended;
  const counts = new Map<string, number>();
  for (const line of readFileSync(file, 'latin1').split('\n')) {
    const [, name] = /^(\w+)\(/.exec(line) ?? [];
    if (name !== undefined) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return counts;
}

test('a request costs no system call but those of its bytes and its wait', { skip }, async (t) => {
  const server = await open(t, exact, { processes: 2, loops: 1, port: 0 });
  const client = keptClient(t, portOf(server));
  const many = async (count: number): Promise<void> => {
    for (let sent = 0; sent < count; sent += 1) await client();
  };
  await many(300);
  let calls: Awaited<ReturnType<typeof callsOf>>;
  let moves: number;
  do {
    // On a busy machine the loop may get no core for so long that its connection leaves it.
    moves = total(server, 'takenAway');
    const [pid] = (await client()).split(':');
    calls = await callsOf(t, Number(pid), () => many(200));
    if (calls === undefined) {
      t.skip('strace may not trace this process');
      return;
    }
  } while (total(server, 'takenAway') !== moves);
  assert.ok(total(server, 'requests') >= 500);
  // One each. A further one for each request would double the number; pings of the listener thread, and its tries to
  // take the connection, are the more the longer a busy machine takes.
  const extra = 100;
  const few = 50;
  for (const names of [['read'], ['write', 'writev']]) {
    const count = names.reduce((sum, name) => sum + (calls.get(name) ?? 0), 0);
    assert.ok(count >= 200 && count <= 200 + extra, `${names.join()}: ${count}`);
  }
  for (const name of ['ioctl', 'getsockopt', 'tgkill', 'epoll_ctl']) {
    const count = calls.get(name) ?? 0;
    assert.ok(count <= few, `${name}: ${count}`);
  }
});

const cases: [name: string, app: string, options: ServeOptions][] = [
  ['without rescue', '', { rescue: false }],
  ['with a limit of the program', 'server.maxConnections = 100;', {}],
];
for (const [name, more, options] of cases) {
  test(`${name} a kept connection waits for its loop`, { skip }, async (t) => {
    const app = program(
      t,
      'app.mjs',
      `import { createServer } from 'node:http';
      import { threadId } from 'node:worker_threads';
      const server = createServer({ keepAliveTimeout: 600_000 }, (request, response) => {
        const endMs = performance.now() + Number(request.url.split('=')[1] ?? 0);
        while (performance.now() < endMs);
        response.end(\`- - \${process.pid}:\${threadId}\`);
      });
      ${more}
      server.listen(0);`,
    );
    const server = await open(t, app, options);
    const { heavy, others, home } = await keptAtOneLoop(t, portOf(server), 1);
    const blocked = await block(server, heavy, 'block=500');
    assert.equal(await others[0]?.(), home);
    await blocked.answer;
    assert.equal(total(server, 'takenAway'), 0);
  });
}
