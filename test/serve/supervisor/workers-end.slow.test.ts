// Shared workers after the end of a loop, of a worker's wire or of the supervisor.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { isRunning, waitFor, withDeadline } from '../../support/index.js';
import { ask, begin } from '../client.js';
import { skip } from '../served.js';
import { app, openShared, type Said, say, sayFromAll, workerCount, workers } from '../sharing.js';

const cli = fileURLToPath(new URL('../../../src/cli/main.js', import.meta.url));

for (const task of ['forever', 'never']) {
  test(`workers are free again when the loop of a task is gone (${task})`, async (t) => {
    const server = await openShared(t, 1);
    await sayFromAll(server, 2, 'ms=5');
    const lost = Array.from({ length: workerCount }, () =>
      say(server, `task=${task}`).catch(() => 'lost'),
    );
    await waitFor(() => server.status().reduce((sum, each) => sum + each.requestsInFlight, 0) > 0);
    await new Promise((resolve) => setTimeout(resolve, 300)); // the tasks have begun
    const [pid = 0] = server.pids;
    process.kill(pid, 'SIGKILL');
    assert.deepEqual(new Set(await Promise.all(lost)), new Set(['lost']));
    await waitFor(() => server.pids.length === 1 && server.pids[0] !== pid);
    const said = await withDeadline(say(server, 'ms=5'), 30_000, 'a worker is free');
    assert.ok(workers().includes(said.said ?? 0));
  });
}

test("a task that writes nonsense to its worker's wire loses that worker alone", {
  skip,
}, async (t) => {
  const server = await openShared(t, 1);
  await sayFromAll(server, 2, 'ms=5');
  const { code } = await say(server, 'task=nonsense');
  assert.equal(code, 'WORKER_EXITED');
  assert.equal((await say(server, 'ms=5')).code, undefined);
  assert.equal(server.pids.length, 1);
});

test('a loop that is gone leaves no descriptor in workers', { skip }, async (t) => {
  const server = await openShared(t);
  await sayFromAll(server, 4, 'ms=5');
  const before = workers();
  const openIn = (pid: number) => readdirSync(`/proc/${pid}/fd`).length;
  const reload = async () => {
    const { pids } = server;
    await server.reload();
    await waitFor(() => !pids.some((pid) => isRunning(pid)));
  };
  await reload();
  const empty = new Map(before.map((pid) => [pid, openIn(pid)])); // no loop has requested a lease since
  for (let round = 0; round < 3; round += 1) {
    await sayFromAll(server, 4, 'ms=5');
    await reload();
  }
  // Another one may have started, and one without a lease for long has ended.
  const left = before.filter((pid) => workers().includes(pid));
  assert.ok(left.length > 0);
  await waitFor(() => left.every((pid) => openIn(pid) <= (empty.get(pid) ?? 0)));
});

/** `manycore serve`, to be killed by the test. */
async function startCommand(t: TestContext, loops: number) {
  const flags = ['serve', app, '-P', '1', '-L', String(loops)];
  const supervisor = spawn(process.execPath, [cli, ...flags], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => supervisor.kill('SIGKILL'));
  const [told] = await once(supervisor.stdout, 'data');
  return { supervisor, port: Number(/:(\d+)/.exec(String(told))?.[1]) };
}

test('workers leave with the server, also when its supervisor is killed', { skip }, async (t) => {
  const { supervisor, port } = await startCommand(t, 2);
  const { said }: Said = JSON.parse((await ask(port, '/?ms=5')).body);
  const left = await begin(port, '/?ms=700&times=3');
  supervisor.kill('SIGKILL');
  const { code }: Said = JSON.parse(await left.body);
  assert.equal(code, undefined); // what has begun may go on, until it is answered
  await waitFor(() => !isRunning(said ?? 0));
});

for (const loops of [1, 2]) {
  test(`a loop that has no supervisor any more starts workers of its own, ${loops} loops`, {
    skip,
  }, async (t) => {
    const { supervisor, port } = await startCommand(t, loops);
    const left = await begin(port, '/?wait=1000&ms=5');
    supervisor.kill('SIGKILL');
    const { said, code }: Said = JSON.parse(await left.body);
    assert.equal(code, undefined);
    await waitFor(() => !isRunning(said ?? 0));
  });
}
