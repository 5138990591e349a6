// Reloads and changes of size lose nothing, and whoever comes after them gets what is new.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { hasCode } from '../../../src/errors.js';
import { serve } from '../../../src/serve/index.js';
import { isRunning, limit, noLimits, waitFor, withDeadline } from '../../support/index.js';
import { begin, bodyOf, keepBusy, portOf } from '../client.js';
import { announced, folder, listens, open, program, skip } from '../served.js';

test('a reload loses no request and replaces every process', async (t) => {
  const server = await open(t, listens, { processes: 2, loops: 2 });
  const before = server.pids;
  const load = [keepBusy(portOf(server), 8, true), keepBusy(portOf(server), 8, false)];
  for (let round = 0; round < 2; round += 1) {
    const answers = load.map((each) => each.answers());
    await server.reload();
    await waitFor(() => load.every((each, at) => each.answers() > (answers[at] ?? 0) + 50));
  }
  for (const each of load) assert.deepEqual((await each.stop()).failures, []);
  assert.equal(server.pids.length, 2);
  for (const pid of server.pids) assert.ok(!before.includes(pid));
  await waitFor(() => before.every((pid) => !isRunning(pid)));
});

test('a client that connects after a reload gets a new process', async (t) => {
  const server = await open(t, listens, { processes: 2, loops: 1 });
  for (let round = 0; round < 2; round += 1) {
    const before = server.pids;
    await server.reload();
    const answers = await Promise.all(Array.from({ length: 8 }, () => bodyOf(portOf(server))));
    assert.deepEqual(
      answers.filter((answer) => before.some((pid) => answer.startsWith(`${pid}:`))),
      [],
    );
  }
});

test('growing and shrinking under load loses no request', async (t) => {
  const server = await open(t, listens, { processes: 1, loops: 1, maxProcesses: 3 });
  const load = [keepBusy(portOf(server), 6, true), keepBusy(portOf(server), 6, false)];
  for (const size of [3, 1, 2, 1]) {
    await server.scale(size);
    assert.equal(server.pids.length, size);
    const answers = load.map((each) => each.answers());
    await waitFor(() => load.every((each, at) => each.answers() > (answers[at] ?? 0) + 50));
  }
  for (const each of load) assert.deepEqual((await each.stop()).failures, []);
  await assert.rejects(server.scale(4), { code: 'OPTION_INVALID' });
});

test('with a socket for each process reloads and changes of size lose no request', {
  skip,
}, async (t) => {
  const options = { processes: 2, loops: 1, maxProcesses: 3, placement: 'reuseport' } as const;
  const server = await open(t, listens, options);
  const port = portOf(server);
  const load = [keepBusy(port, 6, true), keepBusy(port, 6, false)];
  for (const change of [
    () => server.reload(),
    () => server.scale(1),
    () => server.scale(3),
    () => server.reload(),
    () => server.scale(1),
  ]) {
    await change();
    const answers = load.map((each) => each.answers());
    await waitFor(() => load.every((each, at) => each.answers() > (answers[at] ?? 0) + 50));
  }
  for (const each of load) assert.deepEqual((await each.stop()).failures, []);
  // One process is left, and accepts from the sockets of all three.
  for (let asked = 0; asked < 30; asked += 1) {
    assert.equal(await bodyOf(port), `${server.pids[0]}:0`);
  }
});

test('a killed process leaves its own socket to the others', { skip }, async (t) => {
  const app = program(
    t,
    'app.mjs',
    `import { existsSync } from 'node:fs';
    import { createServer } from 'node:http';
    if (existsSync(process.argv[2])) setInterval(() => {}, 1000); // does not listen
    else createServer((_, response) => response.end(String(process.pid))).listen(0, '127.0.0.1');`,
  );
  const flag = join(folder(t), 'silent');
  const options = { processes: 2, loops: 1, placement: 'reuseport', args: [flag] } as const;
  const server = await open(t, app, options);
  writeFileSync(flag, '');
  const [killed = 0, other] = server.pids;
  process.kill(killed, 'SIGKILL');
  await waitFor(() => !server.pids.includes(killed));
  for (let asked = 0; asked < 30; asked += 1) {
    assert.equal(await bodyOf(portOf(server)), String(other));
  }
});

test('a port is not shared with another server, though each process has a socket', {
  skip,
}, async (t) => {
  const options = { loops: 1, placement: 'reuseport' } as const;
  const server = await open(t, listens, options);
  await assert.rejects(
    serve(listens, { ...options, args: [String(portOf(server))] }),
    (error: unknown) => hasCode(error, 'SERVE_START_FAILED') && /EADDRINUSE/.test(String(error)),
  );
});

/** A program whose second loop fails later, once the file of its argument exists. */
const failsInOneLoop = `import { existsSync } from 'node:fs';
import { createServer } from 'node:http';
import { threadId } from 'node:worker_threads';
const isBroken = existsSync(process.argv[2]);
if (isBroken && threadId !== 1) {
  setTimeout(() => { throw new Error('the second loop is broken'); }, 1000);
} else {
  createServer((request, response) => response.end(String(process.pid))).listen(0, '127.0.0.1');
}`;

test('a version of which one loop fails is never asked anything', async (t) => {
  const flag = join(folder(t), 'broken');
  const options = { processes: 1, loops: 2, args: [flag] };
  const server = await open(t, program(t, 'app.mjs', failsInOneLoop), options);
  const before = server.pids;
  const load = [keepBusy(portOf(server), 4, true), keepBusy(portOf(server), 4, false)];
  writeFileSync(flag, '');
  await assert.rejects(server.reload(), /the second loop is broken/);
  for (const each of load) assert.deepEqual((await each.stop()).failures, []);
  assert.deepEqual(server.pids, before);
});

test('a process that fails to start leaves no client waiting at its own socket', {
  skip,
}, async (t) => {
  const flag = join(folder(t), 'broken');
  const server = await open(t, program(t, 'app.mjs', failsInOneLoop), {
    processes: 1,
    loops: 2,
    maxProcesses: 2,
    placement: 'reuseport',
    args: [flag],
  });
  writeFileSync(flag, '');
  await assert.rejects(server.scale(2), /the second loop is broken/);
  assert.equal(server.pids.length, 1);
  for (let asked = 0; asked < 40; asked += 1) {
    const answer = withDeadline(bodyOf(portOf(server)), 20_000, 'an answer');
    assert.equal(await answer, String(server.pids[0]));
  }
});

test('a process without a descriptor for the socket of another answers what it holds, and is replaced', {
  skip: skip || noLimits,
}, async (t) => {
  const flag = join(folder(t), 'end');
  const app = program(
    t,
    'app.mjs',
    `import { existsSync } from 'node:fs';
    import { createServer } from 'node:http';
    createServer((request, response) => {
      if (request.url !== '/held') return response.end(String(process.pid));
      response.write('begun');
      const timer = setInterval(() => {
        if (!existsSync(process.argv[2])) return;
        clearInterval(timer);
        response.end(' and done');
      }, 20);
    }).listen(0, '127.0.0.1');`,
  );
  const server = await open(t, app, {
    processes: 2,
    loops: 1,
    placement: 'reuseport',
    args: [flag],
    drainTimeoutMs: 60_000,
  });
  const lost = announced(t, 'manycore:server:lost');
  const held = await begin(portOf(server), '/held');
  const busy = await waitFor(
    () => server.status().find(({ requestsInFlight }) => requestsInFlight > 0)?.pid,
  );
  const [other = 0] = server.pids.filter((pid) => pid !== busy);
  limit(busy, '--nofile=3:'); // whatever it closes is not used again
  process.kill(other, 'SIGKILL');
  await waitFor(() => lost.length >= 2);
  writeFileSync(flag, '');
  assert.equal(await held.body, 'begun and done');
  await waitFor(() => server.pids.length === 2 && !server.pids.includes(busy));
});
