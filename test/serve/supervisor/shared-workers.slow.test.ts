// One pool under all loops: tasks of every loop run in the same workers, and what one loop does to a worker
// costs no other loop a task.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { waitFor, withDeadline } from '../../support/index.js';
import { bodyOf, portOf } from '../client.js';
import { folder, open, program, skip } from '../served.js';
import { openShared, say, sayFromAll, workerCount, workers } from '../sharing.js';

test('all loops of all processes share one worker for each core', { skip }, async (t) => {
  const server = await openShared(t);
  const said = await sayFromAll(server, 4, 'ms=30');
  const pids = new Set(said.map((each) => each.said));
  assert.ok(pids.size <= workerCount);
  assert.deepEqual(
    [...pids].filter((pid) => !workers().includes(pid ?? 0)),
    [],
  );
  assert.ok(workers().length <= workerCount);
  await server.close();
  assert.deepEqual(workers(), []);
});

test('shared workers take closures, memory and maps in tasks', { skip }, async (t) => {
  const server = await openShared(t);
  for (const each of await sayFromAll(server, 4, 'task=memory')) assert.equal(each.said, 700_000);
  for (const each of await sayFromAll(server, 4, 'task=nested')) assert.equal(each.said, 14);
});

test('a task that waits behind one of another loop goes where a worker is free', {
  skip,
}, async (t) => {
  const server = await openShared(t);
  await sayFromAll(server, 4, 'ms=5');
  const end = join(folder(t), 'end');
  const long = Array.from({ length: workerCount - 1 }, () => say(server, `task=until&file=${end}`));
  const short = Array.from({ length: 12 }, () => say(server, 'ms=10'));
  for (const { code } of await withDeadline(Promise.all(short), 30_000, 'short tasks are done')) {
    assert.equal(code, undefined);
  }
  writeFileSync(end, '');
  for (const { code } of await Promise.all(long)) assert.equal(code, undefined);
});

test('a worker that one loop has to kill takes no task of another along', async (t) => {
  const server = await openShared(t);
  await sayFromAll(server, 4, 'ms=5');
  const endless = Array.from({ length: workerCount }, () =>
    say(server, 'task=forever&timeoutMs=500'),
  );
  const others = Array.from({ length: 12 }, () => say(server, 'ms=10'));
  for (const { code } of await Promise.all(endless)) assert.equal(code, 'TASK_TIMED_OUT');
  for (const { code } of await Promise.all(others)) assert.equal(code, undefined);
});

test('time that a task waits behind another loop is not its own', async (t) => {
  const server = await openShared(t);
  await sayFromAll(server, 4, 'ms=5');
  const long = Array.from({ length: 2 * workerCount }, () => say(server, 'ms=2000'));
  const timed = Array.from({ length: 8 }, () => say(server, 'ms=10&timeoutMs=1500'));
  for (const { code } of await Promise.all([...long, ...timed])) assert.equal(code, undefined);
});

test('a loop that begins while another uses all workers waits for them beyond its start timeout', {
  skip,
}, async (t) => {
  const app = program(
    t,
    'app.mjs',
    `import { subscribe } from 'node:diagnostics_channel';
    import { createServer } from 'node:http';
    import { run } from ${JSON.stringify(new URL('../../../src/public.js', import.meta.url))};
    let failures = 0;
    subscribe('manycore:worker:exit', () => { failures += 1; });
    const { setTimeout } = globalThis;
    const startTimeoutOf1S = (call, ms) => setTimeout(call, ms === 30_000 ? 1000 : ms);
    const spin = (ms) => { for (const end = Date.now() + ms; Date.now() < end; ); };
    createServer(async (request, response) => {
      const ms = Number(request.url.slice(1));
      if (ms === 0) globalThis.setTimeout = startTimeoutOf1S;
      await run(spin, ms);
      response.end(String(failures));
    }).listen(0, '127.0.0.1');`,
  );
  const server = await open(t, app, { processes: 1, loops: 1, drainTimeoutMs: 60_000 });
  const long = Array.from({ length: workerCount }, () => bodyOf(portOf(server), '/4500'));
  await waitFor(() => workers().length === workerCount);
  await server.reload();
  assert.equal(await bodyOf(portOf(server), '/0'), '0');
  for (const failures of await Promise.all(long)) assert.equal(failures, '0');
});

test('a killed worker costs the tasks that had begun there, and is replaced', {
  skip,
}, async (t) => {
  const server = await openShared(t);
  await sayFromAll(server, 4, 'ms=5');
  const file = join(folder(t), 'begun');
  const rest = `task=rest&ms=1000&file=${file}`;
  const running = Array.from({ length: 3 * workerCount }, () => say(server, rest));
  await waitFor(() => readFileSync(file, 'utf8').endsWith('\n'));
  for (const pid of workers()) process.kill(pid, 'SIGKILL');
  const codes = (await Promise.all(running)).map(({ code }) => code);
  const lost = codes.filter((code) => code === 'WORKER_EXITED').length;
  assert.ok(lost >= 1 && lost <= workerCount, `${lost} were lost`);
  assert.equal(codes.filter((code) => code === undefined).length, codes.length - lost);
});

test('a worker that keeps too much memory is replaced, and no task is lost', {
  skip,
}, async (t) => {
  const server = await openShared(t, 2, { maxRssBytes: 400 * 2 ** 20 });
  const { pids } = server;
  await sayFromAll(server, 4, 'ms=5');
  const { said: worn = 0 } = await say(server, 'task=leak&ms=500');
  assert.ok(workers().includes(worn));
  await waitFor(async () => {
    const asked = Array.from({ length: 12 }, () => say(server, 'ms=5'));
    for (const { code } of await Promise.all(asked)) assert.equal(code, undefined);
    return !workers().includes(worn);
  });
  await sayFromAll(server, 4, 'ms=5');
  assert.ok(workers().length <= workerCount);
  assert.deepEqual(server.pids, pids);
});
