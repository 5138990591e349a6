// Finding running programs, with their stats.

import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { TaskSlice } from '../../src/agent/index.js';
import { followTasks, type Program, ProgramSampler, Programs } from '../../src/observe/index.js';
import { killOne, waitFor } from '../support/index.js';
import { ownRuntime } from './runtime.js';

const skip = process.platform !== 'linux' && 'there is no /proc';
const app = new URL('./apps/busy.js', import.meta.url);

function start(t: TestContext, env: NodeJS.ProcessEnv = {}): ChildProcess {
  const child = fork(app, { env: { ...process.env, ...env } });
  t.after(() => child.kill('SIGKILL'));
  return child;
}

function sum(counts: readonly number[]): number {
  return counts.reduce((all, each) => all + each, 0);
}

function isEmpty(folder: string): boolean {
  return readdirSync(folder).length === 0;
}

/** An agent of a main thread that is none, and answers with these stats and some others. */
function pretendAgent(
  t: TestContext,
  runtime: string,
  stats: { pid: number; title: string; sources: readonly unknown[] },
): void {
  const heap = { usedBytes: 1, totalBytes: 2, limitBytes: 3, externalBytes: 0 };
  const loop = { idleMs: 1, activeMs: 1, lag: 'none' };
  const none = { count: 0, totalMs: 0, maxMs: 0 };
  const gc = { minor: none, major: none, incremental: none, weakCallbacks: none };
  const answer = JSON.stringify({ thread: 0, uptimeMs: 5, loop, heap, gc, ...stats });
  const agent = createServer((connection) => {
    connection.on('error', () => {});
    connection.on('data', () => connection.write(`${answer}\n`));
  });
  agent.listen(join(runtime, `agent-${stats.pid}.0.sock`));
  t.after(() => agent.close());
}

async function found(programs: Programs, isMeant: (program: Program) => boolean): Promise<Program> {
  return await waitFor(async () => (await programs.poll()).find(isMeant));
}

test('a program is found by its pool, with the activity of its loop and its workers', async (t) => {
  const runtime = ownRuntime(t);
  const child = start(t);
  using programs = new Programs();
  const completedIn = ({ threads }: Program): number => {
    const pool = threads[0]?.sources.find(({ kind }) => kind === 'pool');
    const { completedTasks }: { completedTasks?: number } = Object(pool?.stats);
    return completedTasks ?? 0;
  };
  const program = await found(
    programs,
    (each) => each.threads[0]?.loop.lag !== undefined && completedIn(each) > 0,
  );
  assert.equal(program.pid, child.pid);
  assert.match(program.title, /busy\.js$/);
  const [main] = program.threads;
  assert.ok(main !== undefined);
  assert.equal(main.thread, 0);
  assert.ok(main.loop.activeMs > 0);
  assert.ok(main.heap.usedBytes > 0 && main.heap.usedBytes < main.heap.limitBytes);
  assert.ok((main.process?.rssBytes ?? 0) > 2 ** 20);
  const later = await found(programs, ({ threads }) => (threads[0]?.gc.minor.count ?? 0) > 0);
  assert.ok((later.threads[0]?.gc.minor.totalMs ?? 0) > 0);
  child.send('end');
  await waitFor(async () => (await programs.poll()).length === 0);
  assert.deepEqual(readdirSync(runtime), []);
});

test('a thread that does not answer is named', async (t) => {
  ownRuntime(t);
  const child = start(t);
  using programs = new Programs();
  await found(programs, ({ threads }) => threads.length > 0);
  child.kill('SIGSTOP');
  const program = await found(programs, ({ silent }) => silent.length > 0);
  const [silent] = program.silent;
  assert.ok(silent !== undefined);
  assert.equal(silent.pid, child.pid);
  assert.equal(silent.thread, 0);
  assert.ok(silent.last?.sources.some(({ kind }) => kind === 'pool'));
  assert.match(program.title, /busy\.js$/);
  child.kill('SIGCONT');
  await found(programs, ({ threads, silent }) => threads.length > 0 && silent.length === 0);
});

test('a program that is blocked when it is first seen has its name', { skip }, async (t) => {
  const runtime = ownRuntime(t);
  const child = start(t);
  await waitFor(() => readdirSync(runtime).length > 0);
  child.kill('SIGSTOP');
  using programs = new Programs();
  const program = await found(programs, ({ silent }) => silent.length > 0);
  assert.equal(program.title, fileURLToPath(app));
});

test('a worker that opens a pool belongs to the program of its own pool', async (t) => {
  ownRuntime(t);
  const child = fork(new URL('./apps/nested.js', import.meta.url));
  t.after(() => child.kill('SIGKILL'));
  using sampler = new ProgramSampler();
  const poll = async () => {
    const programs = await sampler.sample();
    const [program] = programs.filter(({ pools }) => pools.length === 2);
    return program === undefined ? undefined : { program, programs };
  };
  const { program, programs } = await waitFor(poll);
  assert.deepEqual(
    programs.map(({ pid, title }) => [pid, title]),
    [[child.pid, fileURLToPath(new URL('./apps/nested.js', import.meta.url))]],
  );
  assert.equal(program.summary.workers, 2);
  assert.equal(program.summary.loops, 1);
  assert.deepEqual(
    program.threads.map(({ role }) => role),
    ['main', 'worker 1'],
  );
  child.send('block');
  const blocked = await waitFor(async () => {
    const found = await poll();
    const isSeen = found?.program.threads.some(({ isSilent }) => isSilent);
    return isSeen ? found : undefined;
  });
  assert.equal(blocked.programs.length, 1);
  assert.equal(blocked.program.summary.silentThreads, 0); // workers may be busy
});

test('a socket that a killed program left behind is removed', async (t) => {
  const runtime = ownRuntime(t);
  const child = start(t);
  using programs = new Programs();
  await found(programs, ({ threads }) => threads.length > 0);
  child.kill('SIGKILL');
  await waitFor(async () => (await programs.poll()).length === 0 && isEmpty(runtime));
  writeFileSync(join(runtime, 'agent-999999.0.sock'), '');
  await waitFor(async () => (await programs.poll()).length === 0 && isEmpty(runtime));
});

test('output of a socket without an agent is ignored', async (t) => {
  const runtime = ownRuntime(t);
  const impostor = createServer((connection) => {
    connection.on('error', () => {});
    connection.on('data', () => connection.write('{"pid":1}\n[]\nnothing\n'));
  });
  impostor.listen(join(runtime, 'agent-1.0.sock'));
  t.after(() => impostor.close());
  using programs = new Programs();
  const program = await found(programs, ({ silent }) => silent.length > 0);
  assert.deepEqual(program.threads, []);
});

test('a program begins with its own process, also where a worker has a lower number', async (t) => {
  const runtime = ownRuntime(t);
  const workers = [{ id: 1, kind: 'process', pid: 999_997 }];
  const pool = { kind: 'pool', id: 1, stats: { workers } };
  pretendAgent(t, runtime, { pid: 999_998, title: 'main', sources: [pool] });
  pretendAgent(t, runtime, { pid: 999_997, title: 'worker', sources: [] });
  using programs = new Programs();
  const program = await found(programs, ({ threads }) => threads.length === 2);
  assert.deepEqual(
    program.threads.map(({ pid, title }) => [pid, title]),
    [
      [999_998, 'main'],
      [999_997, 'worker'],
    ],
  );
});

test('malformed stats are shown as far as they parse, and other programs are unaffected', async (t) => {
  const runtime = ownRuntime(t);
  const sources = [null, 7, { kind: 'pool', id: 1, stats: { workers: [null, 3, {}], ran: null } }];
  pretendAgent(t, runtime, { pid: 1, title: 'odd.js', sources });
  const statuses = [
    { pid: 2, app: '/odd/server.js' },
    { pid: 3, app: '/odd/lists.js', addresses: [null, 3, '/a/socket'], loops: [null, { pid: 4 }] },
    { app: '/odd/nobody.js', loops: null },
    null,
  ];
  for (const [at, status] of statuses.entries()) {
    const server = createHttpServer((_, response) => response.end(JSON.stringify(status)));
    server.listen(join(runtime, `serve-1.${at}.sock`));
    t.after(() => server.close());
  }
  const child = start(t);
  using sampler = new ProgramSampler();
  const views = await waitFor(async () => {
    const all = await sampler.sample();
    return all.some(({ pid }) => pid === child.pid) && all;
  });
  const shown = new Map(views.map((view) => [view.pid, view]));
  assert.deepEqual(
    [...shown.keys()],
    [1, 2, 3, child.pid].sort((a = 0, b = 0) => a - b),
  );
  assert.equal(shown.get(1)?.pools[0]?.workers.length, 1);
  assert.deepEqual(shown.get(2)?.servers[0]?.loops, []);
  assert.deepEqual(shown.get(3)?.servers[0]?.addresses, ['/a/socket']);
  assert.equal(shown.get(3)?.servers[0]?.loops[0]?.pid, 4);
});

test('a socket that refuses is left where its process runs', async (t) => {
  const runtime = ownRuntime(t);
  const names = [`agent-${process.pid}.0.sock`, `serve-${process.pid}.sock`];
  for (const name of names) writeFileSync(join(runtime, name), '');
  const ofDead = ['agent-999999.0.sock', 'serve-999999.2.sock'];
  for (const name of ofDead) writeFileSync(join(runtime, name), '');
  using programs = new Programs();
  await waitFor(async () => {
    await programs.poll();
    return readdirSync(runtime).length === 2;
  });
  assert.deepEqual(readdirSync(runtime), names);
});

test('a server that a program has opened is shown once, with its restarts', async (t) => {
  ownRuntime(t);
  for (const control of [true, false]) {
    const child = fork(new URL('./apps/serving.js', import.meta.url), [String(control)]);
    t.after(() => child.kill('SIGKILL'));
    // A loop is ready before its supervisor receives that: killed then, the start has failed.
    await once(child, 'message');
    using sampler = new ProgramSampler();
    const serverOf = async () => {
      const program = (await sampler.sample()).find(({ pid }) => pid === child.pid);
      assert.ok(program === undefined || program.servers.length <= 1);
      return program?.servers[0];
    };
    const server = await waitFor(async () => {
      const found = await serverOf();
      return found?.loops[0]?.state === 'ready' && found;
    });
    assert.match(server.app, /answer\.js$/);
    assert.equal(server.addresses.length, 1);
    assert.equal(server.lostProcesses, 0);
    killOne(server.loops[0]?.pid, 'SIGKILL');
    await waitFor(async () => (await serverOf())?.lostProcesses === 1);
    child.kill('SIGTERM');
    await once(child, 'exit');
  }
});

test('slices of tasks arrive while a listener is connected', async (t) => {
  ownRuntime(t);
  const child = start(t);
  using programs = new Programs();
  await found(programs, ({ threads }) => threads.length > 0);
  const slices: TaskSlice[] = [];
  let isOver = false;
  const stop = followTasks(
    { pid: child.pid ?? 0, thread: 0 },
    (slice) => slices.push(slice),
    () => {
      isOver = true;
    },
  );
  t.after(stop);
  // A slice of a slow machine may hold only a task that began in an earlier one.
  const withTasks = await waitFor(() => slices.find(({ workers }) => (workers[0]?.tasks ?? 0) > 0));
  const [worker] = withTasks.workers;
  assert.ok(worker !== undefined && worker.worker > 0 && worker.busyMs > 0);
  assert.equal(sum(withTasks.ran.map(([, count]) => count)), worker.tasks);
  await waitFor(() => slices.some(({ tasks }) => tasks.some(({ isFailed }) => isFailed)));
  // A quick task takes long enough on a busy machine to be sent by name, too.
  const span = await waitFor(() =>
    slices.flatMap(({ tasks }) => tasks).find(({ name }) => name.startsWith('slow')),
  );
  assert.ok(span.endMs - span.startMs >= 1);
  const failed = await waitFor(() =>
    // A slice of a slow machine may hold one task alone.
    slices
      .flatMap(({ workers }) => workers)
      .find((each) => each.failed > 0 && each.failed < each.tasks),
  );
  assert.ok(failed.worker > 0);
  const all = slices.flatMap(({ tasks }) => tasks);
  assert.ok(all.every(({ isFailed, name }) => isFailed === (name === 'slowFail')));
  child.kill('SIGKILL');
  await waitFor(() => isOver);
});

test('a program with MANYCORE_AGENT=0 is not found', async (t) => {
  const runtime = ownRuntime(t);
  const hidden = start(t, { MANYCORE_AGENT: '0' });
  const seen = start(t);
  using programs = new Programs();
  await found(programs, ({ pid }) => pid === seen.pid);
  assert.deepEqual(
    readdirSync(runtime).filter((name) => name.includes(String(hidden.pid))),
    [],
  );
});
