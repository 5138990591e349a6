// Durable tasks: stored in JetStream of a real nats-server until a node has run them, also without their
// caller.

import assert from 'node:assert/strict';
import { fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { CodedError, Pool, run, task } from '../../../src/public.js';
import { command } from '../../cli/serving.js';
import { waitFor } from '../../support/index.js';
import { eventually, joinBus, skip } from '../server.js';
import {
  double,
  durable,
  note,
  notesFile,
  notesIn,
  openCounts,
  openPool,
  openStore,
  secret,
  startDurable,
  startNode,
  tasksUrl,
  untilGo,
} from './durables.js';

test('a durable task has its captured values, and its result or error comes back', {
  skip,
}, async (t) => {
  const server = await startDurable(t);
  const node = await startNode(t, server);
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
  assert.equal(grandparent, node.pid);
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
    (error) => error instanceof CodedError && error.code === 'WORKER_EXITED',
  );
});

test('functions from a durable task keep their identity in the caller and in the next task', {
  skip,
}, async (t) => {
  const server = await startDurable(t);
  await startNode(t, server);
  const pool = await openPool(t, server);
  const make = () => ({
    // biome-ignore lint/complexity/noStaticOnlyClass: statics are the subject
    Shape: class Shape {
      static n = 1;
    },
    bound: Math.max.bind(null, 1),
  });
  const durable = pool.with({ durable: true });
  for (const made of [await durable.run(make), await pool.run(make)]) {
    made.Shape.n = 2;
    const [n, back] = await durable.run((given) => [given.Shape.n, given] as const, made);
    assert.equal(n, 2);
    assert.deepEqual([back.Shape === made.Shape, back.bound === made.bound], [true, true]);
  }
});

test('the time of a durable task has a limit', { skip }, async (t) => {
  const server = await startDurable(t);
  await startNode(t, server);
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
  const lost = fork(new URL('../apps/caller.js', import.meta.url), args);
  t.after(() => lost.kill('SIGKILL'));
  const undone = await openCounts(t, server);
  await eventually(async () => assert.equal(await undone(), 1));
  lost.kill('SIGKILL');
  await once(lost, 'exit');
  assert.deepEqual(notesIn(file), []);
  await startNode(t, server);
  await eventually(() => assert.deepEqual(notesIn(file), ['once']));
  const pool = await openPool(t, server);
  const again = pool.with({ durable: { id: 'the report' } });
  assert.deepEqual(
    await Promise.all([again.run(note, file, 'twice'), again.run(note, file, 'x')]),
    ['once', 'once'],
  );
  assert.deepEqual(notesIn(file), ['once']);
});

test('a task that is aborted before its start does not run', { skip }, async (t) => {
  const server = await startDurable(t);
  const file = notesFile(t);
  const pool = await openPool(t, server);
  const controller = new AbortController();
  const aborted = pool.with({ durable: true, signal: controller.signal }).run(note, file, 'no');
  const undone = await openCounts(t, server);
  await eventually(async () => assert.equal(await undone(), 1));
  controller.abort();
  await assert.rejects(aborted, { code: 'ABORTED' });
  await eventually(async () => assert.equal(await undone(), 0));
  await startNode(t, server);
  await pool.with({ durable: true }).run(note, file, 'yes');
  assert.deepEqual(notesIn(file), ['yes']);
});

test('a node has one worker for a pool or a durable task', { skip }, async (t) => {
  const server = await startDurable(t);
  await startNode(t, server);
  const pool = await openPool(t, server);
  const file = notesFile(t);
  const held = pool.run(untilGo, file);
  await eventually(() => assert.deepEqual(notesIn(file), ['began']));
  const waiting = pool.with({ durable: true }).run(note, file, 'after');
  const store = await openStore(t, server);
  const task = await waitFor(() => store.nextTask()); // the node has not taken it
  task.nak();
  assert.deepEqual(notesIn(file), ['began']);
  writeFileSync(`${file}.go`, '');
  await held;
  await pool.close(); // waits for it, and gives its worker back
  assert.equal(await waiting, 'after');
});

test('without a secret tasks call exports of a node by name', { skip }, async (t) => {
  const server = await startDurable(t);
  await startNode(t, server, { secret: '', tasks: tasksUrl.href });
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
  await assert.rejects(cluster.lendWorkers(1, { durable: true }), unsigned);
  await pool.close();
});

test('the command takes durable tasks', { skip }, async (t) => {
  const server = await startDurable(t);
  const args = [
    'worker',
    '--nats',
    server.url,
    '--workers',
    '1',
    '--module',
    fileURLToPath(tasksUrl),
  ];
  const node = spawn(process.execPath, [command, ...args], { stdio: 'pipe' });
  t.after(() => node.kill('SIGKILL'));
  const lines: string[] = [];
  createInterface({ input: node.stdout }).on('line', (line) => lines.push(line));
  await waitFor(() => lines.includes('lends 1 worker, and takes durable tasks'));
  const { cluster } = await joinBus(t, server);
  await using pool = new Pool({ cluster });
  assert.equal(await pool.with({ durable: true }).run(double, 4), 8);
  node.kill('SIGTERM');
  assert.deepEqual(await once(node, 'exit'), [0, null]);
});

test('limits of durable tasks', { skip }, async (t) => {
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
  await using special = new Pool({ cluster, setup: () => {}, env: { A: 'b' } });
  await assert.rejects(special.with({ durable: true }).run(double, 1), {
    ...invalid,
    message: /a pool that has no setup/,
  });
  await using various = new Pool({ cluster, env: () => ({}) });
  await assert.rejects(various.with({ durable: true }).run(double, 1), {
    ...invalid,
    message: /a pool that has no env/,
  });
  await using local = new Pool({ size: 1 });
  await assert.rejects(local.with({ durable: true }).run(double, 1), invalid);
  assert.throws(() => run.with({ durable: true }), invalid);
  await assert.rejects(pool.with({ durable: { id: 'x'.repeat(2000) } }).run(double, 1), invalid);
  await assert.rejects(cluster.lendWorkers(1, { modules: [tasksUrl] }), invalid); // has a secret
  const unsigned = (await joinBus(t, await startDurable(t))).cluster;
  await assert.rejects(unsigned.lendWorkers(1, { modules: ['tasks.js'] }), invalid);
  await assert.rejects(unsigned.lendWorkers(1, { durable: false, modules: [tasksUrl] }), invalid);
});

test('a node that has to end finishes its running tasks', { skip }, async (t) => {
  const server = await startDurable(t);
  const node = await startNode(t, server);
  const caller = await durable(t, server);
  const file = notesFile(t);
  const running = caller.run(untilGo, file);
  await eventually(() => assert.deepEqual(notesIn(file), ['began']));
  node.kill('SIGTERM');
  const later = caller.run(double, 1); // for another
  writeFileSync(`${file}.go`, '');
  assert.equal(await running, 'done');
  assert.deepEqual(await once(node, 'exit'), [0, null]);
  assert.deepEqual(notesIn(file), ['began']);
  await startNode(t, server);
  assert.equal(await later, 2);
});
