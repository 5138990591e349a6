import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { type TestContext, test } from 'node:test';
import { pmap } from '../../src/public.js';
import { waitFor } from '../support/index.js';
import { Gate, openPool, ways } from './calls/ways.js';
import { blockUntil, spinMs } from './tasks.js';

/** Collects the messages on these channels from now on. */
function listen(t: TestContext, names: readonly string[]): { name: string; message: object }[] {
  const heard: { name: string; message: object }[] = [];
  for (const name of names) {
    const onMessage = (message: unknown): void => {
      if (typeof message === 'object' && message !== null) heard.push({ name, message });
    };
    subscribe(name, onMessage);
    t.after(() => unsubscribe(name, onMessage));
  }
  return heard;
}

for (const way of ways) {
  test(`${way.name}: stats() counts what waits, runs, is done and failed`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const gate = new Gate(t);
    const [open, mark] = [gate.file, gate.mark('busy')];
    const running = pool.run(() => blockUntil(open, mark, 1));
    await gate.reached('busy');
    const waiting = pool.run(() => 2);
    const during = pool.stats();
    assert.deepEqual([during.runningTasks, during.waitingTasks, during.completedTasks], [1, 1, 0]);
    assert.equal(during.channel, way.channel);
    assert.equal(during.workers[0]?.state, 'ready');
    assert.equal(during.workers[0]?.kind, way.worker);
    gate.open();
    await Promise.all([running, waiting]);
    await assert.rejects(pool.run(() => Promise.reject(new Error('no'))));
    const { runningTasks, waitingTasks, completedTasks, failedTasks, ran, waited } = pool.stats();
    assert.deepEqual([runningTasks, waitingTasks, completedTasks, failedTasks], [0, 0, 2, 1]);
    assert.deepEqual([ran.count, waited.count], [3, 3]);
    assert.equal(pool.stats().workers[0]?.tasksDone, 3);
  });
}

test('stats() has the times that tasks ran and waited', async (t) => {
  const pool = openPool(t, { size: 1 });
  await Promise.all([pool.run(() => spinMs(100)), pool.run(() => 1)]);
  const { ran, waited } = pool.stats();
  assert.ok(ran.maxMs >= 100, `${ran.maxMs} ms ran`);
  assert.ok(waited.maxMs >= 100, `${waited.maxMs} ms waited`);
  assert.ok(ran.p50Ms <= ran.maxMs && ran.p50Ms <= ran.p99Ms);
  assert.ok(ran.minMs < ran.meanMs && ran.deviationMs > 0);
});

test('resetTimes() begins the times of stats() anew, and not what others count', async (t) => {
  const pool = openPool(t, { size: 1 });
  await pool.run(() => spinMs(20));
  pool.resetTimes();
  assert.equal(pool.stats().ran.count, 0);
  await pool.run(() => 1);
  const { ran, waited, completedTasks } = pool.stats();
  assert.deepEqual([ran.count, waited.count, completedTasks], [1, 1, 2]);
  assert.deepEqual([ran.minMs, ran.sumMs], [ran.maxMs, ran.maxMs], 'of one task');
  const { ran: all, waited: allWaited } = pool.sample();
  assert.deepEqual([all.count, allWaited.count], [2, 2]);
  assert.ok(all.maxMs >= 20);
});

for (const way of ways) {
  test(`${way.name}: stats() counts the bytes that go to workers and come from them`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    await pool.run((text: string) => text.length, 'x');
    const before = pool.stats();
    await pool.run((text: string) => text.length, 'x'.repeat(10_000));
    const sent = pool.stats();
    assert.ok(sent.sentBytes - before.sentBytes >= 10_000);
    assert.ok(sent.receivedBytes - before.receivedBytes < 10_000);
    const large = await pool.run((size: number) => new Uint8Array(size), 2 ** 20);
    assert.equal(large.byteLength, 2 ** 20);
    const received = pool.stats();
    assert.ok(received.receivedBytes - sent.receivedBytes >= 2 ** 20);
    assert.ok(received.sentBytes - sent.sentBytes < 10_000);
    await pool.run((bytes: Uint8Array) => bytes.byteLength, large);
    assert.ok(pool.stats().sentBytes - received.sentBytes >= 2 ** 20);
    await pool.close();
    assert.ok(pool.stats().sentBytes >= received.sentBytes + 2 ** 20); // those of workers that are gone
  });
}

test('stats() counts lost workers apart from closed ones', async (t) => {
  const pool = openPool(t, { size: 1 });
  await assert.rejects(
    pool.run(() => process.kill(process.pid, 'SIGKILL')),
    { code: 'WORKER_EXITED' },
  );
  await pool.run(() => 1);
  await pool.close();
  const { startedWorkers, exitedWorkers, lostWorkers } = pool.stats();
  assert.deepEqual([startedWorkers, exitedWorkers, lostWorkers], [2, 2, 1]);
});

test('the life of tasks, workers and pool is published on diagnostics channels', async (t) => {
  const heard = listen(t, [
    'manycore:pool:open',
    'manycore:worker:start',
    'manycore:worker:ready',
    'manycore:task:queued',
    'manycore:task:start',
    'manycore:task:end',
    'manycore:task:error',
    'manycore:worker:exit',
    'manycore:pool:close',
  ]);
  const pool = openPool(t, { size: 1 });
  await pool.run(function named() {});
  await assert.rejects(pool.run(() => Promise.reject(new Error('no'))));
  await pool.close();
  await waitFor(() => heard.at(-1)?.name === 'manycore:pool:close');
  assert.deepEqual(
    heard.map(({ name }) => name.slice('manycore:'.length)),
    [
      ...['pool:open', 'worker:start', 'task:queued', 'worker:ready'],
      ...['task:start', 'task:end', 'task:start', 'task:end', 'task:error'],
      ...['worker:exit', 'pool:close'],
    ],
  );
  const started = heard.find(({ name }) => name === 'manycore:task:start')?.message;
  assert.equal(Reflect.get(started ?? {}, 'name'), 'named');
  const exited = heard.find(({ name }) => name === 'manycore:worker:exit')?.message;
  assert.equal(Reflect.get(exited ?? {}, 'isExpected'), true);
});

test('repeated starts of workers and growth of a pool are published', async (t) => {
  const heard = listen(t, ['manycore:worker:restart', 'manycore:pool:resize']);
  const setup = (): Promise<never> => Promise.reject(new Error('never'));
  const pool = openPool(t, { size: 1, setup, startRetryMs: 600_000 });
  const waiting = assert.rejects(
    pool.run(() => 1),
    { code: 'POOL_CLOSED' },
  );
  await waitFor(() => pool.stats().restarts >= 4, 120_000);
  await pool.destroy();
  await waiting;
  const restarts = heard.filter(({ name }) => name === 'manycore:worker:restart');
  const delays = restarts.map(({ message }) => Reflect.get(message, 'delayMs'));
  assert.deepEqual(delays.slice(0, 4), [50, 100, 200, 400]);
  assert.equal(pool.stats().restarts, delays.length);
  const resize = heard.find(({ name }) => name === 'manycore:pool:resize')?.message;
  assert.equal(Reflect.get(resize ?? {}, 'workersWanted'), 1);
  assert.notEqual(Reflect.get(resize ?? {}, 'pool'), 0);
});

test('a worker that we end after a timeout or an abort is not lost; one that is killed is', async (t) => {
  const pool = openPool(t, { size: 1, worker: 'process', graceMs: 10 });
  const gate = new Gate(t);
  const { file } = gate;
  const forever = (mark: string): number => blockUntil(file, mark, 1);
  const exits = listen(t, ['manycore:worker:exit']);
  // A call that is out of time before it has begun ends no worker: on a busy machine it gets more.
  for (let timeoutMs = 50; pool.stats().exitedWorkers === 0; timeoutMs *= 4) {
    const call = pool.with({ timeoutMs }).run(forever, gate.mark('out of time'));
    await assert.rejects(call, { code: 'TASK_TIMED_OUT' });
    assert.equal(await pool.run(() => 'next'), 'next');
  }
  const abort = new AbortController();
  const aborted = pool.with({ signal: abort.signal }).run(forever, gate.mark('aborted'));
  await gate.reached('aborted');
  abort.abort();
  await assert.rejects(aborted, { code: 'ABORTED' });
  await waitFor(() => pool.stats().exitedWorkers === 2);
  assert.equal(pool.stats().lostWorkers, 0);
  assert.deepEqual(
    exits.map(({ message }) => Reflect.get(message, 'isExpected')),
    [true, true],
  );
  process.kill(await pool.run(() => process.pid), 'SIGKILL');
  await waitFor(() => pool.stats().exitedWorkers === 3);
  assert.equal(pool.stats().lostWorkers, 1);
});

test('results of nested maps that go on to another worker are among what was sent', async (t) => {
  const pool = openPool(t, { size: 2 });
  await pool.warm();
  const outer = async () => {
    const items = Array.from({ length: 40 }, (_, at) => at);
    const slow = (): [number, string] => {
      const end = performance.now() + 5;
      while (performance.now() < end);
      return [process.pid, 'x'.repeat(10_000)];
    };
    const all = await pmap(items, slow, { chunk: 1 });
    return all.filter(([pid]) => pid !== process.pid).length;
  };
  let elsewhere = 0;
  await waitFor(async () => {
    elsewhere += await pool.run(outer);
    return elsewhere > 0;
  });
  assert.ok(pool.stats().sentBytes >= elsewhere * 10_000);
});
