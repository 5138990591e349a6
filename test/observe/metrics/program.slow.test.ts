// Threads and processes that are reported as those of a program, and those reported as up.

import assert from 'node:assert/strict';
import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createConnection, createServer } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { ownStats } from '../../../src/agent/index.js';
import { serveMetrics } from '../../../src/observe/index.js';
import { processReadings } from '../../../src/observe/metrics/processes.js';
import { Programs } from '../../../src/observe/programs.js';
import { Pool, type UnitContext } from '../../../src/public.js';
import { folder, open, skip } from '../../serve/served.js';
import { waitFor } from '../../support/index.js';
import { startLoops } from '../../units/loops.js';
import { ownRuntime } from '../runtime.js';
import { type Line, scrape, valuesOf } from './scrape.js';

async function endpointUrl(t: TestContext): Promise<string> {
  const opened = await serveMetrics({ port: 0 });
  t.after(() => opened.close());
  return opened.url;
}

/** Blocks its thread at a message, until the file named in it exists. */
function blocker({ bus }: UnitContext) {
  const words = new Int32Array(new SharedArrayBuffer(4));
  bus.consumer<string>('block', (message) => {
    bus.send('blocks', undefined);
    while (!existsSync(message.body)) Atomics.wait(words, 0, 0, 20);
  });
  bus.consumer('fail', () => {
    throw new Error('bad');
  });
}

test('a thread of a blocking unit is reported, and is not down while it blocks', {
  skip,
}, async (t) => {
  ownRuntime(t);
  const loops = startLoops(t, { processes: 1, loops: 1 });
  await loops.deploy(blocker, { on: 'blocking' });
  const url = await endpointUrl(t);
  const buses = (lines: readonly Line[]): number =>
    valuesOf(lines, 'manycore_bus_messages_received_total').length;
  // The buses are of this thread, the loop, and the thread beside it.
  const lines = await waitFor(async () => {
    const lines = await scrape(url);
    return buses(lines) === 3 ? lines : undefined;
  });
  assert.deepEqual(valuesOf(lines, 'manycore_thread_up'), [1, 1]);
  loops.bus.send('fail', 1);
  await waitFor(async () => {
    const failed = valuesOf(await scrape(url), 'manycore_bus_handlers_failed_total');
    return failed.length === 3 && failed.reduce((sum, each) => sum + each) === 1;
  });
  const programs = new Programs();
  t.after(() => programs[Symbol.dispose]());
  // A thread that has no core for a moment is silent.
  await waitFor(async () => {
    const ours = (await programs.poll()).filter(({ threads }) => threads.length > 0);
    const counts = ours.map(({ pid, threads }) => [pid, threads.length]);
    assert.deepEqual(counts, [[process.pid, 3]]);
    return true;
  });
  const blocks = new Promise((resolve) => loops.bus.consumer('blocks', resolve));
  const letGo = join(folder(t), 'go');
  loops.bus.send('block', letGo);
  await blocks;
  await waitFor(async () => {
    const blocked = await scrape(url);
    assert.equal(buses(blocked), 2);
    assert.deepEqual(valuesOf(blocked, 'manycore_thread_up'), [1, 1]);
    return true;
  });
  writeFileSync(letGo, '');
});

test('a thread that a served program starts is reported', { skip }, async (t) => {
  ownRuntime(t);
  const app = fileURLToPath(new URL('../apps/with-worker.js', import.meta.url));
  const server = await open(t, app, { loops: 1 });
  const url = await endpointUrl(t);
  const [pid = 0] = server.pids;
  await waitFor(
    async () => valuesOf(await scrape(url), 'manycore_tasks_completed_total', { pid })[0] === 1,
  );
  assert.equal(valuesOf(await scrape(url), 'manycore_thread_up', { pid }).length, 2);
});

test('the pool of a worker is reported, and the worker is not down while it is busy', async (t) => {
  ownRuntime(t);
  const pool = new Pool({ size: 1 });
  t.after(() => pool.close());
  const letGo = join(folder(t), 'go');
  await pool.run(
    async (library) => {
      const { Pool: NestedPool } = await import(library);
      const nested = new NestedPool({ size: 1 });
      await nested.run(() => 1);
      Object.assign(globalThis, { nested });
    },
    new URL('../../../src/public.js', import.meta.url).href,
  );
  const url = await endpointUrl(t);
  const started = (lines: readonly Line[]): number[] =>
    valuesOf(lines, 'manycore_workers_started_total');
  const lines = await waitFor(async () => {
    const found = await scrape(url);
    return started(found).length === 2 ? found : undefined;
  });
  assert.deepEqual(valuesOf(lines, 'manycore_thread_up'), [1]);
  const busy = pool.run(async (path) => {
    const { existsSync } = await import('node:fs');
    const words = new Int32Array(new SharedArrayBuffer(4));
    while (!existsSync(path)) Atomics.wait(words, 0, 0, 20);
  }, letGo);
  const blocked = await waitFor(async () => {
    const found = await scrape(url);
    return started(found).length === 1 ? found : undefined;
  });
  assert.deepEqual(valuesOf(blocked, 'manycore_thread_up'), [1]);
  writeFileSync(letGo, '');
  await busy;
});

test('a silent thread is asked over one connection, however often', async (t) => {
  const runtime = ownRuntime(t);
  const path = join(runtime, `agent-${process.pid}.77.sock`);
  let connections = 0;
  let questions = '';
  const server = createServer((socket) => {
    connections += 1;
    socket.on('data', (bytes) => {
      questions += String(bytes);
    });
    t.after(() => socket.destroy());
  });
  await new Promise<void>((resolve) => {
    server.listen(path, resolve);
  });
  t.after(() => server.close());
  const url = await endpointUrl(t);
  const up = async (): Promise<number[]> =>
    valuesOf(await scrape(url), 'manycore_thread_up', { thread: 77 });
  assert.deepEqual(await up(), [0]);
  assert.deepEqual(await up(), [0]);
  assert.equal(connections, 1);
  assert.equal(questions, 'stats\n');
});

test('a socket that a killed process left is gone after a scrape', async (t) => {
  const runtime = ownRuntime(t);
  const left = 'agent-999999.0.sock';
  const others = [`agent-${process.pid}.78.sock`, 'notes.txt'];
  for (const name of [left, ...others]) writeFileSync(join(runtime, name), '');
  const lines = await scrape(await endpointUrl(t));
  assert.deepEqual(valuesOf(lines, 'manycore_thread_up', { pid: 999_999 }), []);
  await waitFor(() => !existsSync(join(runtime, left)));
  for (const name of others) assert.ok(readdirSync(runtime).includes(name));
});

/** Listens at `workerData`, where one connection may wait, and takes none. */
const deaf = `
  const { workerData, parentPort } = require('node:worker_threads');
  require('node:net').createServer().listen({ path: workerData, backlog: 1 }, () => {
    parentPort.postMessage('listens');
    setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0));
  });
`;

test('a thread that is too busy to be connected to is down, not gone', async (t) => {
  const runtime = ownRuntime(t);
  const path = join(runtime, `agent-${process.pid}.78.sock`);
  const worker = new Worker(deaf, { eval: true, workerData: path });
  t.after(() => worker.terminate());
  await new Promise((resolve) => worker.once('message', resolve));
  for (let count = 0; count < 4; count += 1) {
    const socket = createConnection(path);
    socket.on('error', () => {});
    t.after(() => socket.destroy());
  }
  const url = await endpointUrl(t);
  const up = async (): Promise<number[]> =>
    valuesOf(await scrape(url), 'manycore_thread_up', { thread: 78 });
  assert.deepEqual(await up(), [0]);
  assert.deepEqual(await up(), [0]);
  rmSync(path);
  assert.deepEqual(await up(), []);
});

test('a worker that takes the place of another has its series', async (t) => {
  ownRuntime(t);
  const pool = new Pool({ size: 1, worker: 'process', maxTasksPerWorker: 1 });
  t.after(() => pool.close());
  const url = await endpointUrl(t);
  const seen = new Set<number>();
  const slotsSeen = new Set<string>();
  for (let count = 0; count < 3; count += 1) {
    await pool.warm();
    const lines = await scrape(url);
    const workers = lines.filter(
      ({ name, labels }) =>
        name === 'manycore_process_resident_bytes' && labels['role'] === 'worker',
    );
    for (const { labels } of workers) slotsSeen.add(`${labels['slot']} ${labels['pid']}`);
    seen.add(await pool.run(() => process.pid));
    await waitFor(() => pool.stats().exitedWorkers === count + 1);
  }
  assert.equal(seen.size, 3);
  assert.deepEqual([...slotsSeen], ['1 undefined']);
});

test('processor time has one source: /proc, wherever it is', {
  skip: process.platform !== 'linux' && 'there is no /proc',
}, async () => {
  const stats = await ownStats();
  const reported = { rssBytes: 1, userMs: 1e12, systemMs: 1e12 };
  const [own] = processReadings(process.pid, [{ ...stats, process: reported }], []);
  assert.ok(own?.cpu !== undefined && own.cpu.userMs < reported.userMs);
});
