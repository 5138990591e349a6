// Calls on a cluster after it was left, and the fate of earlier ones.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defer } from '../../src/lib/index.js';
import { Pool, pmap } from '../../src/public.js';
import { joinBus, skip, startServer } from './server.js';
import { secret, startDurable, startNode } from './tasks/durables.js';

const closed = { code: 'CLUSTER_CLOSED' };

test('a cluster that was left lends no workers', { skip }, async (t) => {
  const server = await startServer(t);
  const { cluster } = await joinBus(t, server, { secret });
  const left = cluster.close();
  await assert.rejects(cluster.lendWorkers(1), closed);
  await left;
  await assert.rejects(cluster.lendWorkers(1), closed);
  await assert.rejects(cluster.lendWorkers(1, { durable: true }), closed);
});

test('a lending that starts while the cluster is left is refused', { skip }, async (t) => {
  const server = await startDurable(t);
  const { cluster } = await joinBus(t, server, { secret });
  const lending = assert.rejects(cluster.lendWorkers(1, { durable: true }), closed);
  await cluster.close();
  await lending;
});

test('so is one while the cluster still waits for the tasks of another node', {
  skip,
}, async (t) => {
  const server = await startDurable(t);
  const { cluster } = await joinBus(t, server, { secret });
  const { promise, resolve } = defer<void>();
  t.mock.method(await cluster.lendWorkers(1), 'close', () => promise);
  const lending = assert.rejects(cluster.lendWorkers(1, { durable: true }), closed);
  const left = cluster.close();
  await lending;
  resolve();
  await left;
});

test('a cluster forgets a node that was closed', { skip }, async (t) => {
  const server = await startServer(t);
  const { cluster } = await joinBus(t, server, { secret });
  const nodes = [await cluster.lendWorkers(1), await cluster.lendWorkers(1)];
  const [first, second] = nodes.map((each) => t.mock.method(each, 'close').mock);
  await nodes[0]?.close();
  await cluster.close();
  assert.deepEqual([first?.callCount(), second?.callCount()], [1, 1]);
});

test('a pool on a cluster that was left rejects at once, with or without workers', {
  skip,
}, async (t) => {
  const server = await startDurable(t);
  await startNode(t, server);
  const { cluster } = await joinBus(t, server, { secret });
  await using used = new Pool({ cluster });
  assert.equal(await used.run(() => 'there'), 'there');
  await cluster.close();
  await using unused = new Pool({ cluster });
  for (const pool of [used, unused]) {
    const run = () => 1;
    await assert.rejects(pool.run(run), closed);
    await assert.rejects(pool.with({ whenBusy: 'reject' }).run(run), closed);
    await assert.rejects(pool.with({ durable: true }).run(run), closed);
    await assert.rejects(
      pmap([1], (n) => n, { pool }),
      closed,
    );
    await assert.rejects(pool.warm(), closed);
  }
});

test('a task that waits for a worker when the cluster is left is rejected with the reason', {
  skip,
}, async (t) => {
  const server = await startServer(t);
  const { cluster } = await joinBus(t, server, { secret });
  await using pool = new Pool({ cluster });
  const waiting = [pool.run(() => 1), pool.warm()];
  const told = waiting.map((each) =>
    assert.rejects(each, (error: Error) => {
      assert.equal(Object(error).code, 'WORKER_START_FAILED');
      assert.match(error.message, /the connection to the NATS server is closed/);
      assert.equal(Object(error.cause).code, 'CLUSTER_CLOSED');
      return true;
    }),
  );
  await cluster.close();
  await Promise.all(told);
});
