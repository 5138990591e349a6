// The end of `manycore worker`: running tasks have their time, new ones are refused, and a second signal
// ends it at once. Also a node that is stopped (SIGSTOP) and goes on.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { Pool, type PoolOptions } from '../../../src/public.js';
import { command } from '../../cli/serving.js';
import { runCommand } from '../../faults/child.js';
import { isRunning, waitFor } from '../../support/index.js';
import { eventually, joinBus, type Server, skip, startServer } from '../server.js';
import { notesFile, notesIn, openCounts, untilGo } from '../tasks/durables.js';

const secret = 'nobody else knows this';

interface NodeProgram {
  readonly child: ChildProcess;
  /** Lines of its output so far; grows. */
  readonly lines: readonly string[];
}

async function startNode(
  t: TestContext,
  { url }: Server,
  ...flags: string[]
): Promise<NodeProgram> {
  const args = [command, 'worker', '--nats', url, '--workers', '2', ...flags];
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, MANYCORE_CLUSTER_SECRET: secret },
  });
  t.after(() => child.kill('SIGKILL'));
  const lines: string[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(line));
  await waitFor(() => lines.some((line) => line.startsWith('lends 2 workers')));
  return { child, lines };
}

async function openPool(t: TestContext, server: Server, options: PoolOptions = {}): Promise<Pool> {
  const { cluster } = await joinBus(t, server, { secret });
  const pool = new Pool({ cluster, ...options });
  t.after(() => pool.destroy());
  return pool;
}

/** Sends TERM and waits until the node has confirmed it. */
async function terminate({ child, lines }: NodeProgram): Promise<void> {
  child.kill('SIGTERM');
  await waitFor(() => lines.some((line) => line.includes('once more ends')));
}

/** Returns the node under which it ran, once the file exists. */
async function nodeOnce(file: string): Promise<number> {
  while (!existsSync(file)) await new Promise((resolve) => setTimeout(resolve, 5));
  return process.ppid;
}

/** Runs an endless task; resolves when it has reported its process number. */
async function runForever(pool: Pool): Promise<{ pid: number; failed: Promise<unknown> }> {
  const pid = await pool.run(() => process.pid);
  const failed = pool.run(() => new Promise(() => setInterval(() => {}, 1000)));
  failed.catch(() => {});
  await eventually(() => assert.equal(pool.stats().runningTasks, 1));
  return { pid, failed };
}

test('tasks that run at TERM end with their results, and waiting ones go elsewhere', {
  skip,
}, async (t) => {
  const server = await startServer(t);
  const first = await startNode(t, server);
  const pool = await openPool(t, server, { size: { min: 0, max: 2 } });
  const file = notesFile(t);
  const running = [pool.run(nodeOnce, file), pool.run(nodeOnce, file)];
  await eventually(() => assert.equal(pool.stats().runningTasks, 2));
  const exit = once(first.child, 'exit');
  await terminate(first);
  const waiting = [pool.run(nodeOnce, file), pool.run(nodeOnce, file)];
  const second = await startNode(t, server);
  writeFileSync(file, '');
  assert.deepEqual(await Promise.all(running), [first.child.pid, first.child.pid]);
  assert.deepEqual(await exit, [0, null]);
  assert.deepEqual(await Promise.all(waiting), [second.child.pid, second.child.pid]);
});

test('a task that blocks its worker at TERM ends with its result, too', { skip }, async (t) => {
  const server = await startServer(t);
  const node = await startNode(t, server);
  const pool = await openPool(t, server, { size: { max: 1 } });
  await pool.run(() => 1);
  const running = pool.run(() => {
    const end = Date.now() + 1000;
    while (Date.now() < end);
    return 'done';
  });
  await eventually(() => assert.equal(pool.stats().runningTasks, 1));
  const exit = once(node.child, 'exit');
  await terminate(node);
  assert.equal(await running, 'done');
  assert.deepEqual(await exit, [0, null]);
});

test('a node with idle workers ends without waiting', { skip }, async (t) => {
  const server = await startServer(t);
  const node = await startNode(t, server);
  const pool = await openPool(t, server);
  const pid = await pool.run(() => process.pid);
  const exit = once(node.child, 'exit');
  node.child.kill('SIGTERM');
  assert.deepEqual(await exit, [0, null]);
  assert.equal(isRunning(pid), false);
});

test('at the deadline a task is ended with its worker', { skip }, async (t) => {
  const server = await startServer(t);
  const node = await startNode(t, server, '--drain-timeout-ms', '300');
  const { pid, failed } = await runForever(await openPool(t, server));
  const exit = once(node.child, 'exit');
  node.child.kill('SIGTERM');
  await assert.rejects(failed, { code: 'WORKER_EXITED' });
  assert.deepEqual(await exit, [0, null]);
  assert.equal(isRunning(pid), false);
});

test('a second signal ends a node and its workers at once', { skip }, async (t) => {
  const server = await startServer(t);
  const node = await startNode(t, server);
  const { pid, failed } = await runForever(await openPool(t, server));
  const exit = once(node.child, 'exit');
  await terminate(node);
  node.child.kill('SIGTERM');
  assert.deepEqual(await exit, [1, null]);
  await assert.rejects(failed, { code: 'WORKER_EXITED' });
  await waitFor(() => !isRunning(pid));
});

test('a node that ends while its server is away ends at the deadline', { skip }, async (t) => {
  const server = await startServer(t);
  const node = await startNode(t, server, '--drain-timeout-ms', '500');
  const { pid } = await runForever(await openPool(t, server));
  const exit = once(node.child, 'exit');
  await server.kill();
  node.child.kill('SIGTERM');
  assert.deepEqual(await exit, [0, null]);
  assert.equal(isRunning(pid), false);
});

test('a node that is stopped for over 20 seconds loses its tasks, and joins again', {
  skip,
}, async (t) => {
  const server = await startServer(t, ['-js']);
  const { child: stopped } = await startNode(t, server, '--durable');
  const { cluster } = await joinBus(t, server, { secret });
  await using pool = new Pool({ cluster, size: { min: 0, max: 1 } });
  const file = notesFile(t);
  const durable = pool.with({ durable: { id: 'stopped' } });
  const running = durable.run(untilGo, file);
  const held = pool.run(() => new Promise((resolve) => setTimeout(resolve, 600_000)));
  held.catch(() => {});
  await waitFor(() => notesIn(file).length === 1 && pool.stats().runningTasks === 1);
  await eventually(() => assert.equal(cluster.nodes.length, 1));
  const left = once(cluster, 'leave');
  stopped.kill('SIGSTOP');
  const other = await startNode(t, server, '--durable');
  await waitFor(() => notesIn(file).length === 2, 60_000); // the other one has it, too
  writeFileSync(`${file}.go`, '');
  assert.equal(await running, 'done');
  await assert.rejects(held, { code: 'WORKER_EXITED' });
  assert.equal((await left)[0].pid, stopped.pid);
  assert.equal(await pool.run(() => process.ppid), other.child.pid);

  const joined = once(cluster, 'join');
  stopped.kill('SIGCONT');
  assert.equal((await joined)[0].pid, stopped.pid);
  const undone = await openCounts(t, server);
  await eventually(async () => assert.equal(await undone(), 0));
  assert.equal(await durable.run(untilGo, file), 'done'); // the result of the first call
  assert.equal(notesIn(file).length, 2);
  other.child.kill('SIGKILL');
  await eventually(async () => {
    assert.equal(await pool.with({ retry: 5 }).run(() => process.ppid), stopped.pid);
  });
  const again = pool.with({ durable: true, retry: 5 });
  assert.equal(await again.run(untilGo, file), 'done');
});

test('an invalid deadline is one sentence', async (t) => {
  const args = ['worker', '--nats', 'nats://127.0.0.1:1', '--drain-timeout-ms', 'soon'];
  const { status, stderr } = await runCommand(t, [process.execPath, command, ...args]);
  assert.match(stderr, /'soon' is invalid.*whole number.*\(OPTION_INVALID\)/);
  assert.equal(status, 2);
});
