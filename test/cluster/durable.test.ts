// Durable tasks: kept in JetStream of a real nats-server, done by workers that are killed, and asked for by
// callers that are lost.

import assert from 'node:assert/strict';
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { TaskStore, taskSubjects } from '../../src/cluster/jetstream.js';
import { type Caller, CodedError, Pool, run, task } from '../../src/index.js';
import { command } from '../cli/serving.js';
import { waitFor } from '../support/index.js';
import {
  eventually,
  joinBus,
  refusals,
  type Server,
  skip,
  startServer,
  stranger,
} from './server.js';

const secret = 'nobody else knows this';
const tasksUrl = new URL('./apps/tasks.js', import.meta.url);
const note = task<(file: string, line: string) => string>(tasksUrl, 'note');
const double = task<(n: number) => number>(tasksUrl, 'double');

function startDurable(t: TestContext): Promise<Server> {
  return startServer(t, ['-js']);
}

interface WorkerNeeds {
  readonly secret?: string;
  readonly hosts?: number;
  /** `durable`, or the URL of a module whose exports may be called. */
  readonly tasks?: string;
}

async function startWorker(
  t: TestContext,
  { url }: Server,
  { secret: known = secret, hosts = 1, tasks = 'durable' }: WorkerNeeds = {},
): Promise<ChildProcess> {
  const worker = fork(new URL('./apps/worker.js', import.meta.url), [
    url,
    known,
    String(hosts),
    tasks,
  ]);
  t.after(() => worker.kill('SIGKILL'));
  await once(worker, 'message');
  return worker;
}

async function openPool(t: TestContext, server: Server): Promise<Pool> {
  const { cluster } = await joinBus(t, server, { secret });
  const pool = new Pool({ cluster });
  t.after(() => pool.destroy());
  return pool;
}

async function durable(t: TestContext, server: Server): Promise<Caller> {
  return (await openPool(t, server)).with({ durable: true });
}

/** What a stranger, who has no secret, can do to the streams. */
async function openStore(t: TestContext, { url }: Server): Promise<TaskStore> {
  return await TaskStore.open(await stranger(t, url), 'manycore');
}

function notesFile(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'manycore-notes-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, 'notes');
}

/** As often as `note` was called. */
function notesIn(file: string): string[] {
  try {
    return readFileSync(file, 'utf8').split('\n').slice(0, -1);
  } catch {
    return [];
  }
}

test('a durable task has what it captured, and its result or error comes back', {
  skip,
}, async (t) => {
  const server = await startDurable(t);
  const worker = await startWorker(t, server);
  const caller = await durable(t, server);
  const factor = 2.1;
  class Point {
    readonly x: number;
    constructor(x: number) {
      this.x = x;
    }
  }
  const { grandparent, point } = await caller.run(
    (n: number) => ({ grandparent: process.ppid, point: new Point(n * factor) }),
    20,
  );
  assert.equal(grandparent, worker.pid);
  assert.ok(point instanceof Point);
  assert.equal(point.x, 42);
  assert.equal(await caller.run(double, 21), 42);
  await assert.rejects(
    caller.run(async () => {
      throw new RangeError('too far');
    }),
    (error: Error) => error instanceof RangeError && error.message === 'too far',
  );
  const generates = caller.run(function* () {
    yield 1;
  });
  await assert.rejects(generates, { code: 'TRANSFER_UNSUPPORTED' });
  const ends = caller.run(() => process.exit(3));
  await assert.rejects(
    ends,
    (error) => error instanceof CodedError && error.code === 'HOST_EXITED',
  );
});

test('the time of a durable task has a limit', { skip }, async (t) => {
  const server = await startDurable(t);
  await startWorker(t, server);
  const pool = await openPool(t, server);
  const endless = pool.with({ durable: true, timeoutMs: 50 }).run(function spin() {
    for (;;);
  });
  await assert.rejects(endless, { code: 'TASK_TIMED_OUT', message: /^spin ran longer than 50 ms/ });
});

test('a task outlives its caller, runs once, and its result is kept', { skip }, async (t) => {
  const server = await startDurable(t);
  const file = notesFile(t);
  const args = [server.url, secret, 'the report', file];
  const lost = fork(new URL('./apps/caller.js', import.meta.url), args);
  t.after(() => lost.kill('SIGKILL'));
  const store = await openStore(t, server);
  await eventually(async () => assert.equal(await store.waitingTasks(), 1));
  lost.kill('SIGKILL');
  await once(lost, 'exit');
  assert.deepEqual(notesIn(file), []);
  await startWorker(t, server);
  await eventually(() => assert.deepEqual(notesIn(file), ['once']));
  const pool = await openPool(t, server);
  const again = pool.with({ durable: { id: 'the report' } });
  assert.deepEqual(
    await Promise.all([again.run(note, file, 'twice'), again.run(note, file, 'x')]),
    ['once', 'once'],
  );
  assert.deepEqual(notesIn(file), ['once']);
});

test('tasks of workers that are killed are done by others, and settle once', {
  skip,
}, async (t) => {
  const server = await startDurable(t);
  const file = notesFile(t);
  const workers = await Promise.all([1, 2, 3].map(() => startWorker(t, server, { hosts: 2 })));
  const caller = await durable(t, server);
  const numbers = Array.from({ length: 60 }, (_, n) => n);
  let settled = 0;
  const all = numbers.map(async (n) => {
    const result = await caller.run(async (n: number) => {
      await new Promise((resolve) => setTimeout(resolve, 150));
      return n * 2;
    }, n);
    settled += 1;
    return result;
  });
  for (const [at, least] of [5, 15, 25].entries()) {
    await eventually(() => assert.ok(settled >= least));
    workers[at]?.kill('SIGKILL');
    workers.push(await startWorker(t, server, { hosts: 2 }));
  }
  assert.deepEqual(
    await Promise.all(all),
    numbers.map((n) => n * 2),
  );
  assert.equal(settled, 60);
  assert.deepEqual(notesIn(file), []);
});

test('a server that is restarted loses neither tasks nor results', { skip }, async (t) => {
  const server = await startDurable(t);
  const caller = await durable(t, server);
  const file = notesFile(t);
  const waiting = caller.run(double, 1);
  const store = await openStore(t, server);
  await eventually(async () => assert.notEqual(await store.waitingTasks(), 0));
  await server.restart();
  await startWorker(t, server);
  assert.equal(await waiting, 2);
  const slow = caller.run(async (path: string) => {
    const { appendFileSync, existsSync } = await import('node:fs');
    appendFileSync(path, 'began\n');
    while (!existsSync(`${path}.go`)) await new Promise((resolve) => setTimeout(resolve, 20));
    return 'done';
  }, file);
  await eventually(() => assert.deepEqual(notesIn(file), ['began']));
  await server.kill();
  writeFileSync(`${file}.go`, '');
  await server.restart();
  assert.equal(await slow, 'done');
});

test('what is not signed is neither done nor believed', { skip }, async (t) => {
  const server = await startDurable(t);
  const told = refusals(t);
  const file = notesFile(t);
  const pool = await openPool(t, server);
  const called = pool.with({ durable: { id: 'forged' } }).run(note, file, 'true');
  const store = await openStore(t, server);
  const { result } = taskSubjects('manycore', 'forged');
  await eventually(async () => assert.equal(await store.waitingTasks(), 1));
  await store.putResult(result, Buffer.alloc(100)); // heard by the caller, and there before the true one
  await eventually(() => assert.equal(told.length, 1));
  assert.match(told[0] ?? '', /not signed with the secret/);
  const other = taskSubjects('manycore', 'other');
  await store.putTask(other.task, Buffer.alloc(100));
  await startWorker(t, server);
  assert.equal(await called, 'true');
  await eventually(async () => assert.equal(await store.waitingTasks(), 0)); // the forged one as well
  assert.equal(await store.result(other.result), undefined);
  assert.deepEqual(notesIn(file), ['true']);
});

test('a task that is put there again is not done again', { skip }, async (t) => {
  const server = await startDurable(t);
  const file = notesFile(t);
  const connection = await stranger(t, server.url);
  const heard: Uint8Array[] = [];
  connection.subscribe('manycore.tasks.>', { callback: (_error, { data }) => heard.push(data) });
  await connection.flush();
  const pool = await openPool(t, server);
  await startWorker(t, server);
  await pool.with({ durable: { id: 'replayed' } }).run(note, file, 'first');
  const store = await openStore(t, server);
  await eventually(async () => assert.equal(await store.waitingTasks(), 0));
  const { task: subject } = taskSubjects('manycore', 'replayed');
  const [frame] = heard;
  assert.ok(frame);
  assert.notEqual(await store.putTask(subject, frame), undefined);
  await eventually(async () => assert.equal(await store.waitingTasks(), 0));
  assert.deepEqual(notesIn(file), ['first']);
});

test('a task that is aborted before it begins is not done', { skip }, async (t) => {
  const server = await startDurable(t);
  const file = notesFile(t);
  const pool = await openPool(t, server);
  const controller = new AbortController();
  const aborted = pool.with({ durable: true, signal: controller.signal }).run(note, file, 'no');
  const store = await openStore(t, server);
  await eventually(async () => assert.equal(await store.waitingTasks(), 1));
  controller.abort();
  await assert.rejects(aborted, { code: 'ABORTED' });
  await eventually(async () => assert.equal(await store.waitingTasks(), 0));
  await startWorker(t, server);
  await pool.with({ durable: true }).run(note, file, 'yes');
  assert.deepEqual(notesIn(file), ['yes']);
});

test('a task that no worker survives is given up', { skip }, async (t) => {
  const server = await startDurable(t);
  const caller = await durable(t, server);
  const called = caller.run(double, 1);
  const store = await openStore(t, server);
  for (let given = 0; given < 20; given += 1) {
    const task = await waitFor(() => store.nextTask());
    task.nak();
  }
  await startWorker(t, server);
  await assert.rejects(called, { code: 'HOST_EXITED' });
});

test('a worker has one host for a pool or a durable task', { skip }, async (t) => {
  const server = await startDurable(t);
  await startWorker(t, server);
  const pool = await openPool(t, server);
  const file = notesFile(t);
  const held = pool.run(async (path: string) => {
    const { appendFileSync, existsSync } = await import('node:fs');
    appendFileSync(path, 'began\n');
    while (!existsSync(`${path}.go`)) await new Promise((resolve) => setTimeout(resolve, 20));
  }, file);
  await eventually(() => assert.deepEqual(notesIn(file), ['began']));
  const waiting = pool.with({ durable: true }).run(note, file, 'after');
  const store = await openStore(t, server);
  const task = await waitFor(() => store.nextTask()); // the worker has not taken it
  task.nak();
  assert.deepEqual(notesIn(file), ['began']);
  writeFileSync(`${file}.go`, '');
  await held;
  await pool.close(); // waits for it, and gives its host back
  assert.equal(await waiting, 'after');
});

test('without a secret tasks call what a worker was given, by its name', { skip }, async (t) => {
  const server = await startDurable(t);
  await startWorker(t, server, { secret: '', tasks: tasksUrl.href });
  const { cluster } = await joinBus(t, server);
  const pool = new Pool({ cluster });
  const caller = pool.with({ durable: true });
  const unsigned = { code: 'CLUSTER_UNSIGNED' };
  assert.equal(await caller.run(double, 21), 42);
  const exec = task<(command: string) => unknown>('node:child_process', 'execSync');
  await assert.rejects(
    caller.run(() => 1),
    unsigned,
  );
  await assert.rejects(pool.run(double, 21), unsigned);
  await assert.rejects(pool.warm(), unsigned);
  await assert.rejects(caller.run(exec, 'true'), unsigned);
  await assert.rejects(cluster.lendHosts(1, { durable: true }), unsigned);
  await pool.close();
});

test('the command takes durable tasks', { skip }, async (t) => {
  const server = await startDurable(t);
  const args = [
    'worker',
    '--nats',
    server.url,
    '--hosts',
    '1',
    '--module',
    fileURLToPath(tasksUrl),
  ];
  const worker = spawn(process.execPath, [command, ...args], { stdio: 'pipe' });
  t.after(() => worker.kill('SIGKILL'));
  const lines: string[] = [];
  createInterface({ input: worker.stdout }).on('line', (line) => lines.push(line));
  await waitFor(() => lines.includes('lends 1 host, and takes durable tasks'));
  const { cluster } = await joinBus(t, server);
  await using pool = new Pool({ cluster });
  assert.equal(await pool.with({ durable: true }).run(double, 4), 8);
  worker.kill('SIGTERM');
  assert.deepEqual(await once(worker, 'exit'), [0, null]);
});

test('without JetStream nothing durable is done', { skip }, async (t) => {
  const server = await startServer(t);
  const { cluster } = await joinBus(t, server, { secret });
  const missing = { code: 'CLUSTER_NOT_DURABLE' };
  const pool = new Pool({ cluster });
  t.after(() => pool.destroy());
  await assert.rejects(pool.with({ durable: true }).run(double, 1), missing);
  await assert.rejects(cluster.lendHosts(1, { durable: true }), missing);
});

test('what is larger than a message of the server is refused', { skip }, async (t) => {
  const server = await startDurable(t);
  await startWorker(t, server);
  const caller = await durable(t, server);
  const large = { code: 'BUS_TOO_LARGE' };
  await assert.rejects(
    caller.run((bytes: Uint8Array) => bytes.byteLength, new Uint8Array(2 ** 21)),
    large,
  );
  await assert.rejects(
    caller.run(() => new Uint8Array(2 ** 21)),
    large,
  );
});

test('what waits ends with its pool or its cluster', { skip }, async (t) => {
  const server = await startDurable(t);
  const { cluster } = await joinBus(t, server, { secret });
  const pool = new Pool({ cluster });
  const first = pool.with({ durable: true }).run(double, 1);
  const destroyed = assert.rejects(first, { code: 'POOL_CLOSED' });
  await pool.destroy();
  await destroyed;
  const other = new Pool({ cluster });
  const second = other.with({ durable: true }).run(double, 1);
  const left = assert.rejects(second, { code: 'CLUSTER_CLOSED' });
  await cluster.close();
  await left;
  await assert.rejects(other.with({ durable: true }).run(double, 1), { code: 'CLUSTER_CLOSED' });
  await other.close();
});

test('what a durable task cannot be', { skip }, async (t) => {
  const server = await startDurable(t);
  const { cluster } = await joinBus(t, server, { secret });
  const invalid = { code: 'OPTION_INVALID' };
  await using pool = new Pool({ cluster });
  for (const options of [
    { durable: { id: '' } },
    { durable: true, whenBusy: 'inline' },
    { durable: true, priority: 1 },
    { durable: 'yes' },
    { durable: { name: 'x' } },
  ]) {
    assert.throws(() => Reflect.apply(pool.with, pool, [options]), invalid);
  }
  await using local = new Pool({ size: 1 });
  await assert.rejects(local.with({ durable: true }).run(double, 1), invalid);
  assert.throws(() => run.with({ durable: true }), invalid);
  await assert.rejects(pool.with({ durable: { id: 'x'.repeat(2000) } }).run(double, 1), invalid);
  await assert.rejects(cluster.lendHosts(1, { modules: [tasksUrl] }), invalid); // has a secret
  const unsigned = (await joinBus(t, await startDurable(t))).cluster;
  await assert.rejects(unsigned.lendHosts(1, { modules: ['tasks.js'] }), invalid);
  await assert.rejects(unsigned.lendHosts(1, { durable: false, modules: [tasksUrl] }), invalid);
});
