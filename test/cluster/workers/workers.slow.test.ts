// Grants of workers to a pool, with lost and repeated frames: a network inside this process, between a pool
// and nodes whose workers are real processes.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Signer } from '../../../src/cluster/bus/signature.js';
import { Subjects } from '../../../src/cluster/nats/subjects.js';
import type { WorkersOptions } from '../../../src/cluster/tasks/task-options.js';
import { Slots } from '../../../src/cluster/workers/slots.js';
import { WorkerLending } from '../../../src/cluster/workers/worker-lending.js';
import { ClusterWorkers } from '../../../src/cluster/workers/workers.js';
import { Pool } from '../../../src/public.js';
import { childrenOf } from '../../support/index.js';
import { type Frame, LossyNetwork } from '../lossy.js';
import { eventually, refusals } from '../server.js';

const signer = new Signer('nobody else knows this', 'name');
const subjects = new Subjects('name');

function options(network: LossyNetwork): WorkersOptions {
  return { connection: network.connect(), name: 'name', signer, subjects };
}

function openPool(t: TestContext, network: LossyNetwork): Pool {
  const cluster = { workers: new ClusterWorkers(options(network)) };
  const pool = new Pool({ cluster, size: { min: 0, max: 1 } });
  t.after(() => pool.destroy());
  return pool;
}

function startLending(network: LossyNetwork, count: number): WorkerLending {
  return new WorkerLending(options(network), new Slots(count), 0);
}

function startNode(t: TestContext, network: LossyNetwork): WorkerLending {
  const node = startLending(network, 1);
  t.after(() => node.close());
  return node;
}

/** Returns the subject of the worker that a frame grants. */
function grantIn(data: Uint8Array): string | undefined {
  const text = Buffer.from(data).toString('latin1');
  return /"type":"granted","subject":"([^"]*)"/.exec(text)?.[1];
}

/** Returns requests for workers, with their receivers. */
function requestsOf(network: LossyNetwork): Frame[] {
  const requests: Frame[] = [];
  network.copies = (frame) => {
    if (frame.subject === subjects.workers) requests.push(frame);
    return 1;
  };
  return requests;
}

test('a replayed request for a worker starts no second process', async (t) => {
  const network = new LossyNetwork();
  const requests = requestsOf(network);
  startNode(t, network);
  const pool = openPool(t, network);
  const pid = await pool.run(() => process.pid);
  const [request] = requests;
  assert.ok(request !== undefined);
  const why = refusals(t);
  network.publish(request); // without a subscriber: its only worker is lent
  await pool.destroy();
  await eventually(() => assert.deepEqual(childrenOf(process.pid), []));
  await eventually(() => {
    network.publish(request); // once the node has subscribed again
    assert.match(why.join(), /a request for a worker came again/);
  });
  assert.deepEqual(childrenOf(process.pid), []);
  assert.equal(await openPool(t, network).run(() => 'another'), 'another');
  assert.notEqual(pid, process.pid);
});

test('a node with room starts no second process for a request that comes twice', async (t) => {
  const network = new LossyNetwork();
  const node = startLending(network, 2);
  t.after(() => node.close());
  network.copies = ({ subject }) => (subject === subjects.workers ? 2 : 1);
  const pool = openPool(t, network);
  assert.equal(await pool.run(() => 1), 1);
  assert.equal(node.lentWorkers, 1);
});

test('a lost grant is sent again, and the pool has the same worker', async (t) => {
  const network = new LossyNetwork();
  const node = startNode(t, network);
  let lost = 0;
  network.copies = ({ data }) => {
    if (lost > 0 || !Buffer.from(data).includes('granted')) return 1;
    lost += 1;
    return 0;
  };
  const why = refusals(t);
  const pool = openPool(t, network);
  const pid = await pool.run(() => process.pid);
  assert.equal(lost, 1);
  assert.deepEqual(
    childrenOf(process.pid).map((child) => child.pid),
    [pid],
  );
  assert.equal(node.lentWorkers, 1);
  assert.deepEqual(why, []);
});

test('a worker that no pool accepts is released, and lent again', async (t) => {
  const network = new LossyNetwork();
  startNode(t, network);
  let isLosing = true;
  const grants = new Set<string>();
  network.copies = ({ data }) => {
    const granted = grantIn(data);
    if (granted === undefined || !isLosing) return 1;
    grants.add(granted);
    return 0;
  };
  const pool = openPool(t, network);
  const running = pool.run(() => 'at last');
  await eventually(() => assert.ok(grants.size > 1)); // it lends one at a time
  isLosing = false;
  assert.equal(await running, 'at last'); // for the same request, repeated
});

test('if two nodes grant one request, the pool releases one worker', async (t) => {
  const network = new LossyNetwork();
  const nodes = [startNode(t, network), startNode(t, network)];
  const grants = new Set<string>();
  const refused: string[] = [];
  network.copies = ({ data, subject }) => {
    if (Buffer.from(data).includes('"refuse"')) refused.push(subject);
    const granted = grantIn(data);
    if (granted === undefined) return 1;
    grants.add(granted);
    return grants.size > 1 ? 1 : 0; // messages of the first are lost until the second has sent one
  };
  const why = refusals(t);
  const pool = openPool(t, network);
  const pid = await pool.run(() => process.pid);
  assert.equal(grants.size, 2);
  await eventually(() =>
    assert.deepEqual(nodes.map(({ lentWorkers }) => lentWorkers).sort(), [0, 1]),
  );
  assert.deepEqual(refused, [[...grants][0]]);
  await eventually(() => {
    const running = childrenOf(process.pid).map((child) => child.pid);
    assert.deepEqual(running, [pid]);
  });
  assert.equal(await pool.run(() => process.pid), pid);
  assert.deepEqual(why, []);
});
