// Metrics over HTTP for the whole program, also while a part of it does not answer.

import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { type TestContext, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { readBlockingPool } from '../../../src/blocking-pool/index.js';
import {
  type EndpointOptions,
  type MetricsEndpoint,
  serveMetrics,
} from '../../../src/observe/index.js';
import { Pool } from '../../../src/public.js';
import { skipCounting, skip as skipPools, withoutSymbols } from '../../blocking-pool/programs.js';
import { ask, portOf } from '../../serve/client.js';
import { listens, open, skip } from '../../serve/served.js';
import { waitFor } from '../../support/index.js';
import { ownRuntime } from '../runtime.js';
import { asked, type Line, scrape, valuesOf } from './scrape.js';

async function endpoint(t: TestContext, options: EndpointOptions = {}): Promise<MetricsEndpoint> {
  const opened = await serveMetrics({ port: 0, ...options });
  t.after(() => opened.close());
  return opened;
}

/** A thread with a pool that the returned function blocks and lets go. */
function otherThread(t: TestContext): { id: number; block: () => void; letGo: () => void } {
  const words = new Int32Array(new SharedArrayBuffer(4));
  const worker = new Worker(new URL('../apps/thread.js', import.meta.url), {
    workerData: words.buffer,
  });
  const letGo = (): void => {
    Atomics.store(words, 0, 0);
    Atomics.notify(words, 0);
  };
  t.after(async () => {
    letGo();
    await worker.terminate();
  });
  const block = (): void => {
    Atomics.store(words, 0, 1);
    worker.postMessage('block');
  };
  return { id: worker.threadId, block, letGo };
}

test('the endpoint answers with what the pools of this thread did', async (t) => {
  ownRuntime(t);
  const pool = new Pool({ size: 1 });
  t.after(() => pool.close());
  const { url } = await endpoint(t);
  await scrape(url); // starts sampling
  await pool.run((text: string) => text.length, 'x'.repeat(5000));
  let calls = 0;
  await pool.run(() => calls); // captures what changes: a snapshot for this call
  calls += 1;
  await assert.rejects(pool.run(() => Promise.reject(new Error('as it should'))));
  const answer = await asked(url);
  assert.equal(answer.status, 200);
  assert.match(answer.type, /^text\/plain; version=0\.0\.4/);
  const lines = await scrape(url);
  const one = (name: string, labels = {}): number => {
    const values = valuesOf(lines, name, { pid: process.pid, ...labels });
    assert.equal(values.length, 1, name);
    return values[0] ?? Number.NaN;
  };
  assert.equal(one('manycore_thread_up', { thread: 0 }), 1);
  assert.equal(one('manycore_tasks_completed_total'), 2);
  assert.equal(one('manycore_tasks_failed_total'), 1);
  assert.equal(one('manycore_tasks_answered_total'), 3);
  assert.equal(one('manycore_workers', { state: 'ready' }), 1);
  assert.equal(one('manycore_workers_started_total'), 1);
  assert.equal(one('manycore_worker_restarts_total'), 0);
  assert.ok(one('manycore_transfer_sent_bytes_total') > 5000);
  assert.ok(one('manycore_transfer_received_bytes_total') > 0);
  assert.ok(one('manycore_captures_total') >= 1);
  assert.ok(one('manycore_capture_seconds_total') > 0);
  assert.ok(one('manycore_task_run_seconds_sum') > 0);
  assert.equal(one('manycore_task_run_seconds_count'), 3);
  assert.equal(one('manycore_task_run_seconds_bucket', { le: '+Inf' }), 3);
  assert.equal(valuesOf(lines, 'manycore_task_wait_seconds_bucket').length, 15);
  assert.equal(one('manycore_tasks_failed_total', { pool: 1 }), 1);
  assert.ok(one('manycore_loop_active_seconds_total') > 0);
  assert.ok(one('manycore_process_resident_bytes') > 2 ** 20);
  assert.ok(one('manycore_heap_used_bytes') < one('manycore_heap_limit_bytes'));
  const [workerBytes = 0] = valuesOf(lines, 'manycore_process_resident_bytes', { role: 'worker' });
  assert.ok(one('manycore_process_cpu_seconds_total', { mode: 'user' }) > 0);
  if (process.platform === 'linux') {
    assert.ok(workerBytes > 2 ** 20);
    const workerTimes = { slot: 1, role: 'worker' };
    assert.equal(valuesOf(lines, 'manycore_process_cpu_seconds_total', workerTimes).length, 2);
  }
});

test('the thread pool of libuv is reported where it is readable', async (t) => {
  ownRuntime(t);
  await readFile(new URL(import.meta.url)); // the pool has threads from now on
  const { url } = await endpoint(t);
  const threads = valuesOf(await scrape(url), 'manycore_blocking_pool_threads', {
    pid: process.pid,
  });
  assert.deepEqual(threads, seenThreads());
});

test('the wait of a job is reported only where jobs cannot be counted', {
  skip: skipPools || skipCounting,
}, async (t) => {
  ownRuntime(t);
  const app = new URL('../apps/metered.js', import.meta.url);
  const [counted, uncounted] = await Promise.all(
    [process.execPath, withoutSymbols(t)].map(async (execPath) => {
      const child = fork(app, { execPath });
      t.after(() => child.kill('SIGKILL'));
      const [url] = await once(child, 'message');
      return String(url);
    }),
  );
  const values = async (url = '', what = ''): Promise<number[]> =>
    valuesOf(await scrape(url), `manycore_blocking_pool_${what}`, { role: 'program' });
  assert.deepEqual(await values(uncounted, 'wait_seconds'), []); // of the scrape before
  await waitFor(async () => ((await values(uncounted, 'wait_seconds'))[0] ?? 0) > 0);
  assert.deepEqual(await values(uncounted, 'waiting'), []);
  await scrape(counted ?? '');
  assert.deepEqual(await values(counted, 'wait_seconds'), []);
  assert.equal((await values(counted, 'waiting')).length, 1);
});

/** Empty if the pool cannot be read. */
function seenThreads(): number[] {
  try {
    return [readBlockingPool().threads];
  } catch {
    return [];
  }
}

test('a blocked thread is down, and stats of other threads remain', async (t) => {
  ownRuntime(t);
  const { id, block, letGo } = otherThread(t);
  const { url } = await endpoint(t);
  const up = (lines: readonly Line[], thread: number): number | undefined =>
    valuesOf(lines, 'manycore_thread_up', { pid: process.pid, thread })[0];
  const done = (lines: readonly Line[], thread: number): number[] =>
    valuesOf(lines, 'manycore_tasks_completed_total', { thread });
  await waitFor(async () => {
    const lines = await scrape(url);
    return up(lines, id) === 1 && done(lines, id)[0] === 1;
  });
  block();
  const blocked = await waitFor(async () => {
    const lines = await scrape(url);
    return up(lines, id) === 0 ? lines : undefined;
  });
  assert.equal(up(blocked, 0), 1);
  assert.deepEqual(done(blocked, id), []);
  assert.equal(valuesOf(blocked, 'manycore_heap_used_bytes', { thread: 0 }).length, 1);
  letGo();
  await waitFor(async () => up(await scrape(url), id) === 1);
});

test('the supervisor reports all loops of a server', { skip }, async (t) => {
  ownRuntime(t);
  const server = await open(t, listens);
  const { url } = await endpoint(t);
  for (let count = 0; count < 5; count += 1) await ask(portOf(server));
  const sum = (lines: readonly Line[], name: string): number =>
    valuesOf(lines, name).reduce((all, each) => all + each, 0);
  const lines = await waitFor(async () => {
    const found = await scrape(url);
    const isUp = valuesOf(found, 'manycore_thread_up').join() === '1,1,1';
    // A client may have its answer before the scoreboard is updated.
    return isUp && sum(found, 'manycore_requests_total') === 5 ? found : undefined;
  });
  assert.equal(sum(lines, 'manycore_connections_total'), 5);
  assert.equal(valuesOf(lines, 'manycore_connections_open').length, 2);
  assert.deepEqual(valuesOf(lines, 'manycore_server_processes'), [1]);
  assert.deepEqual(valuesOf(lines, 'manycore_server_processes_lost_total'), [0]);
  const [pid = 0] = server.pids;
  assert.equal(valuesOf(lines, 'manycore_loop_active_seconds_total', { pid }).length, 2);
  const [bytes = 0] = valuesOf(lines, 'manycore_process_resident_bytes', { pid, role: 'server' });
  assert.ok(bytes > 2 ** 20);
  process.kill(pid, 'SIGKILL');
  await waitFor(
    async () => valuesOf(await scrape(url), 'manycore_server_processes_lost_total')[0] === 1,
  );
});

test('two endpoints answer, each at its own port, also at the same moment', async (t) => {
  ownRuntime(t);
  const pool = new Pool({ size: 1 });
  t.after(() => pool.close());
  await pool.run(() => 1);
  const [one, other] = [await endpoint(t), await endpoint(t)];
  assert.notEqual(one.port, other.port);
  const all = await Promise.all([scrape(one.url), scrape(other.url), scrape(one.url)]);
  for (const lines of all) {
    assert.deepEqual(valuesOf(lines, 'manycore_tasks_completed_total'), [1]);
  }
  await one.close();
  await assert.rejects(asked(one.url));
  assert.equal((await asked(other.url)).status, 200);
});

test('a client that stays connected does not keep the program alive', async (t) => {
  ownRuntime(t);
  const child = fork(new URL('../apps/metered.js', import.meta.url));
  t.after(() => child.kill('SIGKILL'));
  const [url] = await once(child, 'message');
  const socket = connect(Number(new URL(String(url)).port), '127.0.0.1');
  t.after(() => socket.destroy());
  socket.on('error', () => {});
  const get = () => socket.write('GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n');
  get();
  await once(socket, 'data');
  socket.resume();
  // Polls often enough that no server ends the idle connection.
  const timer = setInterval(get, 200);
  t.after(() => clearInterval(timer));
  child.send('end');
  await waitFor(() => child.exitCode === 0, 20_000);
});

test('a taken port is an error with the way out', async (t) => {
  ownRuntime(t);
  const { port } = await endpoint(t);
  await assert.rejects(serveMetrics({ port }), {
    code: 'METRICS_LISTEN_FAILED',
    message: new RegExp(`^metrics cannot be served at 127\\.0\\.0\\.1:${port}: .*EADDRINUSE.*give`),
  });
});

test('the endpoint is on loopback alone by default', async (t) => {
  ownRuntime(t);
  const { port } = await endpoint(t);
  // Had it taken all addresses, this one would be taken, too.
  const beside = createServer();
  await new Promise<void>((resolve, reject) => {
    beside.once('error', reject);
    beside.listen({ port, host: '127.0.0.2' }, resolve);
  });
  beside.close();
  assert.ok((await endpoint(t, { host: '127.0.0.2' })).url.startsWith('http://127.0.0.2:'));
});

test('requests for other paths get no metrics', async (t) => {
  ownRuntime(t);
  const { url, port } = await endpoint(t);
  assert.equal((await asked(url.replace('/metrics', '/'))).status, 404);
  const status = await new Promise<string>((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.end('POST /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n');
    });
    socket.once('data', (data) => resolve(data.toString('latin1').slice(0, 12)));
  });
  assert.equal(status, 'HTTP/1.1 405');
});

test('on loopback it answers to localhost and to addresses alone', async (t) => {
  ownRuntime(t);
  const { url } = await endpoint(t);
  const status = async (host: string): Promise<number> => (await asked(url, { host })).status;
  for (const host of ['localhost', 'LOCALHOST:9464', '127.0.0.1:1', '[::1]:9464']) {
    assert.equal(await status(host), 200, host);
  }
  for (const host of ['evil.example', 'evil.example:9464', 'localhost.evil.example']) {
    assert.equal(await status(host), 403, host);
  }
  const { body } = await asked(url, { host: 'evil.example' });
  assert.match(
    body,
    /^metrics at 127\.0\.0\.1 answer to localhost .*: ask by one of them, or give .*\n$/,
  );
});

test('on other addresses it answers to any name', async (t) => {
  ownRuntime(t);
  const { port } = await endpoint(t, { host: '0.0.0.0' });
  const { status } = await asked(`http://127.0.0.1:${port}/metrics`, { host: 'any.example' });
  assert.equal(status, 200);
});

test('the error for a wrong option has its name', async () => {
  const wrong: object = { prot: 9464 };
  await assert.rejects(serveMetrics(wrong), { code: 'OPTION_INVALID', message: /prot/ });
  await assert.rejects(serveMetrics({ port: 65_536 }), { code: 'OPTION_INVALID', message: /port/ });
});

test('without agents this thread is still reported', async (t) => {
  ownRuntime(t);
  process.env['MANYCORE_AGENT'] = '0';
  t.after(() => delete process.env['MANYCORE_AGENT']);
  const { url } = await endpoint(t);
  assert.deepEqual(valuesOf(await scrape(url), 'manycore_thread_up'), [1]);
});
