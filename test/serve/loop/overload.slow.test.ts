// Answers to clients while every loop is blocked, and placement of connections otherwise.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { waitFor } from '../../support/index.js';
import { ask, type Begun, begin, bodyOf, portOf } from '../client.js';
import { folder, listens, open, program, skip } from '../served.js';

for (const loops of [1, 2]) {
  test(`a client that waits too long for one of ${loops} blocked loops gets 503`, {
    skip,
  }, async (t) => {
    const server = await open(t, listens, { loops, overloadMs: 300 });
    const port = portOf(server);
    const flag = join(folder(t), 'end');
    const turnedAway = () => server.status().reduce((sum, line) => sum + line.turnedAway, 0);
    // A loop may get two, or one may be turned away, when the other had no core for a moment.
    const blocked: Begun[] = [];
    while (server.status().some(({ requestsInFlight }) => requestsInFlight === 0)) {
      blocked.push(await begin(port, `/?until=${flag}`));
    }
    const before = turnedAway();
    const answers = await Promise.all([ask(port), ask(port), ask(port)]);
    for (const { status, headers } of answers) {
      assert.equal(status, 503);
      assert.equal(headers['retry-after'], '1');
    }
    assert.equal(turnedAway() - before, 3);
    writeFileSync(flag, '');
    const bodies = await Promise.all(blocked.map(({ body }) => body));
    assert.ok(bodies.filter((body) => body.startsWith('began ')).length >= loops);
    // A loop that has no core for so long still is too late.
    await waitFor(async () => /^\d+:\d+$/.test(await bodyOf(port)));
  });
}

test('clients wait without a limit when overload answers are off', { skip }, async (t) => {
  const server = await open(t, listens, { loops: 1, overloadMs: 0 });
  const port = portOf(server);
  const blocked = await begin(port, '/?block=1500');
  assert.match(await bodyOf(port), /^\d+:0$/);
  assert.match(await blocked.body, /^began /);
});

test('a loop holds as many connections as it may, and the next wait', { skip }, async (t) => {
  const server = await open(t, listens, { loops: 1, maxConnections: 2, overloadMs: 0 });
  const port = portOf(server);
  const held = [await begin(port, '/?wait=60000'), await begin(port, '/?wait=60000')];
  let isAnswered = false;
  const next = bodyOf(port).finally(() => {
    isAnswered = true;
  });
  // While twenty others connect one by one, the first would have been taken.
  await waitFor(() => waitingAt(port) === 1);
  for (let count = 2; count <= 21; count += 1) {
    const other = connect(port, '127.0.0.1').on('error', () => {});
    t.after(() => other.destroy());
    await once(other, 'connect');
    await waitFor(() => waitingAt(port) === count);
  }
  assert.ok(!isAnswered);
  assert.equal(server.status()[0]?.openConnections, 2);
  held[0]?.leave();
  assert.match(await next, /:0$/);
  held[1]?.leave();
});

/** Number of connections that wait in the kernel for the listener of `port` (proc_pid_net(5)). */
function waitingAt(port: number): number {
  const address = `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const lines = readFileSync('/proc/net/tcp', 'utf8').split('\n');
  const fields = lines.map((line) => line.trim().split(/\s+/));
  const listener = fields.find(([, local, , state]) => local === address && state === '0A');
  return Number.parseInt(listener?.[4]?.split(':')[1] ?? '0', 16);
}

test('a server that does not speak HTTP is not spoken for', async (t) => {
  const app = program(
    t,
    'app.mjs',
    `import { createServer } from 'node:net';
    createServer((socket) => {
      const endMs = performance.now() + 1500;
      while (performance.now() < endMs);
      socket.end('slow');
    }).listen(0, '127.0.0.1');`,
  );
  const server = await open(t, app, { loops: 1, overloadMs: 100 });
  const port = portOf(server);
  const texts = await Promise.all([text(connect(port)), text(connect(port))]);
  assert.deepEqual(texts, ['slow', 'slow']);
});

for (const placement of ['round-robin', 'kernel', 'reuseport'] as const) {
  test(`placed by ${placement}, a blocked loop gets nothing either`, { skip }, async (t) => {
    const server = await open(t, listens, { loops: 2, placement });
    const port = portOf(server);
    const flag = join(folder(t), 'end');
    const blocked = await begin(port, `/?until=${flag}`);
    const others = new Set<string>();
    for (let request = 0; request < 20; request += 1) others.add(await bodyOf(port));
    writeFileSync(flag, '');
    assert.equal(others.size, 1);
    assert.ok(!others.has((await blocked.body).replace('began ', '')));
  });
}

test('placed by round-robin, all loops get as many', { skip }, async (t) => {
  const server = await open(t, listens, { loops: 2, placement: 'round-robin' });
  const placed = () => server.status().map((line) => line.connections);
  const rounds: string[] = [];
  // A loop that has no core for a moment counts as blocked: then the round says nothing.
  while (rounds.length < 20 && !rounds.includes('10,10')) {
    const before = placed();
    for (let request = 0; request < 20; request += 1) await bodyOf(portOf(server));
    rounds.push(
      placed()
        .map((count, loop) => count - (before[loop] ?? 0))
        .join(),
    );
  }
  assert.ok(rounds.includes('10,10'), rounds.join(' '));
  await waitFor(() => server.status().every(({ openConnections }) => openConnections === 0));
});
