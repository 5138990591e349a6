// Servers that grow and shrink with their load, and processes that are replaced before they fail.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { ServedApp } from '../../../src/serve/index.js';
import { waitFor } from '../../support/index.js';
import { bodyOf, keepBusy, portOf } from '../client.js';
import { announced, folder, listens, open, program } from '../served.js';

/** More than the ten quiet ticks after which something is ended. */
const shrinkMs = 40_000;

/** Keeps as many loops as there are busy all the time. */
function overload(server: ServedApp) {
  return keepBusy(portOf(server), 16, false, '/?block=30');
}

function readyLoops(server: ServedApp): number {
  return server.status().filter(({ state }) => state === 'ready').length;
}

test('processes come with the load, up to the most, and go one by one', async (t) => {
  const server = await open(t, listens, { processes: { min: 1, max: 3 }, loops: 1, maxSpare: 1 });
  assert.equal(server.pids.length, 1);
  const load = overload(server);
  await waitFor(() => server.pids.length === 3 && readyLoops(server) === 3);
  const uses = server.status().map(({ utilization }) => utilization);
  assert.ok(
    uses.some((use) => use > 0.5),
    uses.join(),
  );
  assert.deepEqual((await load.stop()).failures, []);
  await waitFor(() => server.pids.length === 2, shrinkMs);
  assert.match(await bodyOf(portOf(server)), /:0$/);
});

test('under perchild the loops of a process come with the load, and go', async (t) => {
  const server = await open(t, listens, {
    plan: 'perchild',
    processes: 1,
    loops: { min: 1, max: 3 },
    maxSpare: 1,
  });
  const { pids } = server;
  assert.equal(readyLoops(server), 1);
  const load = overload(server);
  await waitFor(() => readyLoops(server) === 3);
  assert.deepEqual((await load.stop()).failures, []);
  await waitFor(() => readyLoops(server) === 2, shrinkMs);
  assert.deepEqual(server.pids, pids);
  assert.match(await bodyOf(portOf(server)), /^\d+:[1-9]$/);
});

test('under prefork processes of one loop come with the load', async (t) => {
  const server = await open(t, listens, {
    plan: 'prefork',
    processes: { min: 1, max: 2 },
    loops: undefined,
  });
  assert.deepEqual(
    server.status().map(({ loop }) => loop),
    [0],
  );
  const load = overload(server);
  await waitFor(() => server.pids.length === 2 && readyLoops(server) === 2);
  assert.match(await bodyOf(portOf(server)), /^\d+:0$/); // the main thread
  assert.deepEqual((await load.stop()).failures, []);
});

test('under worker the size stays, whatever the load', async (t) => {
  const server = await open(t, listens, { plan: 'worker', processes: 1, loops: 2 });
  const load = overload(server);
  const isBusy = () => server.status().every(({ utilization }) => utilization > 0.7);
  await waitFor(isBusy);
  await new Promise((resolve) => setTimeout(resolve, 3000)); // the supervisor checks once a second
  assert.equal(server.pids.length, 1);
  assert.equal(readyLoops(server), 2);
  assert.deepEqual((await load.stop()).failures, []);
});

test('under perchild a loop that cannot be added costs the others nothing', async (t) => {
  const app = program(
    t,
    'app.mjs',
    `import { existsSync } from 'node:fs';
    import { createServer } from 'node:http';
    if (existsSync(process.argv[2])) throw new Error('half written');
    createServer((request, response) => {
      const endMs = performance.now() + 30;
      while (performance.now() < endMs);
      response.end();
    }).listen(0, '127.0.0.1');`,
  );
  const flag = join(folder(t), 'broken');
  const server = await open(t, app, {
    plan: 'perchild',
    processes: 1,
    loops: { min: 1, max: 2 },
    args: [flag],
  });
  const failed = announced(t, 'manycore:server:loop-failed');
  const { pids } = server;
  writeFileSync(flag, '');
  const load = overload(server);
  await waitFor(() => failed.length > 0);
  assert.deepEqual(
    failed.map(({ why }) => why),
    ['half written'],
  );
  assert.deepEqual((await load.stop()).failures, []);
  assert.deepEqual(server.pids, pids);
  assert.equal(readyLoops(server), 1);
});

test('a size that was set stays, and a range follows the load again', async (t) => {
  const server = await open(t, listens, { processes: 1, loops: 1, maxProcesses: 3 });
  await server.scale({ min: 1, max: 2 });
  assert.equal(server.pids.length, 1);
  const load = overload(server);
  await waitFor(() => server.pids.length === 2);
  await server.scale(3);
  assert.equal(server.pids.length, 3);
  assert.deepEqual((await load.stop()).failures, []);
});

for (const [limit, isKeptAlive] of [
  [{ maxConnectionsPerProcess: 50 }, false],
  [{ maxRequestsPerProcess: 50 }, true],
  [{ maxAgeMs: 2000 }, true],
] as const) {
  test(`a process is replaced at ${Object.keys(limit)}, and no request is lost`, async (t) => {
    const server = await open(t, listens, { processes: 1, loops: 1, ...limit });
    const [first = 0] = server.pids;
    const load = keepBusy(portOf(server), 4, isKeptAlive);
    await waitFor(() => server.pids.length === 1 && !server.pids.includes(first));
    assert.deepEqual((await load.stop()).failures, []);
    assert.equal(server.status().at(0)?.generation, 0);
  });
}

test('a process that takes too much memory is replaced', async (t) => {
  const app = program(
    t,
    'app.mjs',
    `import { createServer } from 'node:http';
    const kept = [];
    createServer((request, response) => {
      kept.push(Buffer.alloc(200 * 2 ** 20, 1));
      response.end(String(kept.length));
    }).listen(0, '127.0.0.1');`,
  );
  const server = await open(t, app, { loops: 1, maxRssBytes: 250 * 2 ** 20 });
  const [first = 0] = server.pids;
  assert.equal(await bodyOf(portOf(server)), '1');
  await waitFor(() => server.pids.length === 1 && !server.pids.includes(first));
  // The old process may get another connection before its drain begins.
  await waitFor(async () => (await bodyOf(portOf(server))) === '1');
});
