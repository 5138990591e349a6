import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { type TestContext, test } from 'node:test';
import { waitFor } from '../support/index.js';
import { blockUntil, spinMs } from './tasks.js';
import { Gate, openPool, ways } from './ways.js';

/** Everything that is told on these channels from now on. */
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
    assert.equal(during.hosts[0]?.state, 'ready');
    assert.equal(during.hosts[0]?.kind, way.host);
    gate.open();
    await Promise.all([running, waiting]);
    await assert.rejects(pool.run(() => Promise.reject(new Error('no'))));
    const { runningTasks, waitingTasks, completedTasks, failedTasks, ran, waited } = pool.stats();
    assert.deepEqual([runningTasks, waitingTasks, completedTasks, failedTasks], [0, 0, 2, 1]);
    assert.deepEqual([ran.count, waited.count], [3, 3]);
    assert.equal(pool.stats().hosts[0]?.tasksDone, 3);
  });
}

test('stats() knows how long tasks ran and waited', async (t) => {
  const pool = openPool(t, { size: 1 });
  await Promise.all([pool.run(() => spinMs(100)), pool.run(() => 1)]);
  const { ran, waited } = pool.stats();
  assert.ok(ran.maxMs >= 100, `${ran.maxMs} ms ran`);
  assert.ok(waited.maxMs >= 100, `${waited.maxMs} ms waited`);
  assert.ok(ran.p50Ms <= ran.maxMs && ran.p50Ms <= ran.p99Ms);
});

test('the life of tasks, hosts and pool is told on diagnostics channels', async (t) => {
  const heard = listen(t, [
    'manycore:pool:open',
    'manycore:host:start',
    'manycore:host:ready',
    'manycore:task:queued',
    'manycore:task:start',
    'manycore:task:end',
    'manycore:task:error',
    'manycore:host:exit',
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
      ...['pool:open', 'host:start', 'task:queued', 'host:ready'],
      ...['task:start', 'task:end', 'task:start', 'task:end', 'task:error'],
      ...['host:exit', 'pool:close'],
    ],
  );
  const started = heard.find(({ name }) => name === 'manycore:task:start')?.message;
  assert.equal(Reflect.get(started ?? {}, 'name'), 'named');
  const exited = heard.find(({ name }) => name === 'manycore:host:exit')?.message;
  assert.equal(Reflect.get(exited ?? {}, 'isExpected'), true);
});

test('the start of a host that is repeated, and a pool that grows, are told', async (t) => {
  const heard = listen(t, ['manycore:host:restart', 'manycore:pool:resize']);
  const pool = openPool(t, { size: 1, setup: () => Promise.reject(new Error('never')) });
  await assert.rejects(
    pool.run(() => 1),
    { code: 'HOST_START_FAILED' },
  );
  const restarts = heard.filter(({ name }) => name === 'manycore:host:restart');
  const delays = restarts.map(({ message }) => Reflect.get(message, 'delayMs'));
  assert.deepEqual(delays, [50, 100, 200, 400]);
  const resize = heard.find(({ name }) => name === 'manycore:pool:resize')?.message;
  assert.equal(Reflect.get(resize ?? {}, 'hostsWanted'), 1);
  assert.notEqual(Reflect.get(resize ?? {}, 'pool'), 0);
});
