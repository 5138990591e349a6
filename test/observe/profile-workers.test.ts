// `manycore profile` of workers of a pool, and why there is none.

import assert from 'node:assert/strict';
import { fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { agentNameOf, agentSockets } from '../../src/agent/index.js';
import { socketPaths } from '../../src/lib/index.js';
import { profileProcess } from '../../src/observe/index.js';
import { command } from '../cli/serving.js';
import { skip } from '../partitions/support.js';
import { folder } from '../serve/served.js';
import { killOne, waitFor } from '../support/index.js';

interface Profiled {
  readonly pid: number;
  readonly workers: readonly { readonly id: number; readonly pid: number }[];
  readonly first: { readonly id: number; readonly pid: number };
}

/** Starts the program; resolves when its agent is there. */
async function start(t: TestContext, ...args: string[]): Promise<Profiled> {
  const child = fork(new URL('./apps/profiled.js', import.meta.url), args);
  t.after(() => child.kill('SIGKILL'));
  const [workers] = await once(child, 'message');
  const { pid = 0 } = child;
  await waitFor(() => socketPaths(agentSockets).some((path) => agentNameOf(path).pid === pid));
  return { pid, workers, first: workers[0] };
}

/** Checks what DevTools need, and that the task is in it. */
function checkProfile(given: unknown): void {
  const { nodes, samples, timeDeltas, startTime, endTime } = Object(given);
  assert.ok(endTime > startTime);
  assert.ok(samples.length > 0);
  assert.equal(timeDeltas.length, samples.length);
  const names = nodes.map(({ callFrame }: { callFrame: { functionName: string } }) => {
    return callFrame.functionName;
  });
  assert.ok(names.includes('burnsTime'), names.join());
}

test('a worker process is profiled by its number, and by its own pid', async (t) => {
  const { pid, first } = await start(t, 'process');
  const [byNumber] = await profileProcess(pid, { seconds: 1, worker: first.id });
  assert.deepEqual([byNumber?.thread, byNumber?.worker], [0, first.id]);
  checkProfile(byNumber?.profile);
  const [byPid] = await profileProcess(first.pid, { seconds: 1 });
  assert.deepEqual([byPid?.thread, byPid?.worker], [0, first.id]);
  checkProfile(byPid?.profile);
});

test('a worker thread is profiled in the middle of an endless task', async (t) => {
  const { pid, first } = await start(t, 'thread', 'endless');
  const [found] = await profileProcess(pid, { seconds: 1, worker: first.id });
  checkProfile(found?.profile);
});

test('a thread of a pool that is itself in a thread is profiled', async (t) => {
  const { pid, first } = await start(t, 'thread', 'inThread');
  const [found] = await profileProcess(pid, { seconds: 1, worker: first.id });
  assert.notEqual(found?.thread, 0);
  checkProfile(found?.profile);
});

for (const kind of ['process', 'thread']) {
  test(`${kind}: two profiles of one worker at a time are both whole`, async (t) => {
    const { pid, first } = await start(t, kind);
    const both = [1, 2].map((seconds) => profileProcess(pid, { seconds, worker: first.id }));
    for (const [each] of await Promise.all(both)) checkProfile(each?.profile);
  });
}

test('a worker process in an endless task is one sentence', async (t) => {
  const { pid, first } = await start(t, 'process', 'endless');
  await assert.rejects(profileProcess(pid, { seconds: 1, worker: first.id }), {
    code: 'PROFILE_FAILED',
    message:
      /^worker \d+ of process \d+ cannot be profiled: it is busy with one task.*between tasks/,
  });
});

test('a worker that ends meanwhile is one sentence', async (t) => {
  const { pid, first } = await start(t, 'process');
  const profiled = profileProcess(pid, { seconds: 100, worker: first.id });
  const rejected = assert.rejects(profiled, { code: 'PROFILE_FAILED', message: /it has ended/ });
  await profileProcess(pid, { seconds: 1, worker: first.id }); // by now the other has begun
  killOne(first.pid, 'SIGKILL');
  await rejected;
});

test('a parent that ends meanwhile is one sentence', async (t) => {
  const { pid, first } = await start(t, 'process');
  const rejected = assert.rejects(profileProcess(first.pid, { seconds: 100 }), {
    code: 'PROCESS_GONE',
    message: new RegExp(`there is no process ${pid}`),
  });
  await profileProcess(first.pid, { seconds: 1 }); // by now the other has begun
  killOne(pid, 'SIGKILL');
  await rejected;
});

test('a worker in a sandbox is refused in one sentence', { skip }, async (t) => {
  const { pid, first } = await start(t, 'sandbox');
  for (const [of, worker] of [[pid, first.id] as const, [first.pid, undefined] as const]) {
    await assert.rejects(profileProcess(of, { seconds: 1, worker }), {
      code: 'PROFILE_FAILED',
      message: /it is a sandbox, and code that is not trusted gets no inspector/,
    });
  }
});

test('the command writes a file of a worker, and refuses wrong numbers', async (t) => {
  const at = folder(t);
  const { pid, workers, first } = await start(t, 'process');
  const run = async (...args: string[]) => {
    const child = spawn(process.execPath, [command, 'profile', ...args], { cwd: at });
    let text = '';
    child.stdout.on('data', (each) => (text += each));
    child.stderr.on('data', (each) => (text += each));
    const [code] = await once(child, 'close');
    return { code, text };
  };
  const refused: [string, RegExp][] = [
    ['99', new RegExp(`has no worker 99: there are ${workers.map(({ id }) => id).join(', ')}`)],
    ['0', /--worker .* \(OPTION_INVALID\)/],
    ['x', /\(OPTION_INVALID\)/],
  ];
  for (const [worker, message] of refused) {
    const { code, text } = await run(`${pid}`, '--worker', worker);
    assert.match(text, message);
    assert.equal(code, 2);
  }
  const twice = await run(`${first.pid}`, '--worker', `${first.id}`);
  assert.match(twice.text, /is itself worker \d+ of process \d+: .* \(PROFILE_FAILED\)/);
  assert.deepEqual(readdirSync(at), []);
  const { code, text } = await run(`${pid}`, '--worker', `${first.id}`, '--seconds', '1');
  assert.equal(code, 0, text);
  const name = `manycore-${pid}.worker-${first.id}.cpuprofile`;
  assert.deepEqual(readdirSync(at), [name]);
  checkProfile(JSON.parse(readFileSync(join(at, name), 'utf8')));
});
