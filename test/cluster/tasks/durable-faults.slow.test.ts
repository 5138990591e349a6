// Durable tasks where something fails: nodes are killed, the server is restarted or has no JetStream, frames
// are forged or come again.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { Signer } from '../../../src/cluster/bus/signature.js';
import { silentMs, taskSubjects } from '../../../src/cluster/tasks/jetstream.js';
import { Pool } from '../../../src/public.js';
import { waitFor } from '../../support/index.js';
import {
  eventually,
  joinBus,
  limitStream,
  refusals,
  skip,
  startServer,
  startSmallServer,
  stranger,
} from '../server.js';
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
  untilGo,
} from './durables.js';

test('tasks of killed nodes run on others, and settle once', {
  skip,
}, async (t) => {
  const server = await startDurable(t);
  const file = notesFile(t);
  const nodes = await Promise.all([1, 2, 3].map(() => startNode(t, server, { workers: 2 })));
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
    nodes[at]?.kill('SIGKILL');
    nodes.push(await startNode(t, server, { workers: 2 }));
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
  const undone = await openCounts(t, server);
  await eventually(async () => assert.notEqual(await undone(), 0));
  await server.kill();
  const asked = caller.run(double, 2); // while there is no node
  await server.restart();
  await startNode(t, server, { workers: 2 });
  assert.deepEqual(await Promise.all([waiting, asked]), [2, 4]);
  const slow = caller.run(untilGo, file);
  await eventually(() => assert.deepEqual(notesIn(file), ['began']));
  await server.kill();
  await wait(silentMs); // it will deliver the task again
  await server.restart();
  await wait(silentMs / 2);
  writeFileSync(`${file}.go`, '');
  assert.equal(await slow, 'done');
  await eventually(async () => assert.equal(await undone(), 0));
  assert.deepEqual(notesIn(file), ['began']); // not in the node's other worker, too
});

test('unsigned tasks are not run, and unsigned results not accepted', { skip }, async (t) => {
  const server = await startDurable(t);
  const told = refusals(t);
  const file = notesFile(t);
  const pool = await openPool(t, server);
  const called = pool.with({ durable: { id: 'forged' } }).run(note, file, 'true');
  const store = await openStore(t, server);
  const undone = await openCounts(t, server);
  const { result } = taskSubjects('manycore', 'forged');
  await eventually(async () => assert.equal(await undone(), 1));
  await store.putResult(result, Buffer.alloc(100)); // received by the caller, and stored before the true one
  await eventually(() => assert.equal(told.length, 1));
  assert.match(told[0] ?? '', /not signed with the secret/);
  const other = taskSubjects('manycore', 'other');
  await store.putTask(other.task, Buffer.alloc(100));
  await startNode(t, server);
  assert.equal(await called, 'true');
  await eventually(async () => assert.equal(await undone(), 0)); // the forged one as well
  assert.equal(await store.result(other.result), undefined);
  assert.deepEqual(notesIn(file), ['true']);
});

test('a task that is stored again does not run again', { skip }, async (t) => {
  const server = await startDurable(t);
  const file = notesFile(t);
  const connection = await stranger(t, server.url);
  const heard: Uint8Array[] = [];
  connection.subscribe('manycore.tasks.>', { callback: (_error, { data }) => heard.push(data) });
  await connection.flush();
  const pool = await openPool(t, server);
  await startNode(t, server);
  await pool.with({ durable: { id: 'replayed' } }).run(note, file, 'first');
  const store = await openStore(t, server);
  const undone = await openCounts(t, server);
  await eventually(async () => assert.equal(await undone(), 0));
  const { task: subject, result } = taskSubjects('manycore', 'replayed');
  connection.publish(result, Buffer.of(1)); // so that the server forgets it
  await connection.flush();
  const [frame] = heard;
  assert.ok(frame);
  assert.notEqual(await store.putTask(subject, frame), undefined);
  await eventually(async () => assert.equal(await undone(), 0));
  assert.deepEqual(notesIn(file), ['first']);
});

test('a recorded task does not run again when its result was deleted', { skip }, async (t) => {
  const server = await startDurable(t);
  const file = notesFile(t);
  const { cluster } = await joinBus(t, server, { secret });
  const pool = new Pool({ cluster });
  t.after(() => pool.destroy());
  const why = refusals(t);
  const connection = await stranger(t, server.url);
  const heard: Uint8Array[] = [];
  connection.subscribe('manycore.tasks.>', { callback: (_error, { data }) => heard.push(data) });
  await connection.flush();
  await cluster.lendWorkers(1, { durable: true });
  await pool.with({ durable: { id: 'recorded' } }).run(note, file, 'first');
  const store = await openStore(t, server);
  const undone = await openCounts(t, server);
  const { task: subject, result } = taskSubjects('manycore', 'recorded');
  const replay = async (frame: Buffer, expected: RegExp): Promise<void> => {
    await eventually(async () => assert.equal(await undone(), 0));
    const kept = await store.result(result);
    if (kept !== undefined) await store.removeResult(kept.seq);
    assert.notEqual(await store.putTask(subject, frame), undefined);
    await eventually(() => assert.match(why.at(-1) ?? '', expected));
    await eventually(async () => assert.equal(await undone(), 0));
    assert.deepEqual(notesIn(file), ['first']);
  };
  const [heardFrame] = heard;
  assert.ok(heardFrame);
  const frame = Buffer.from(heardFrame);
  await replay(frame, /sent again after it had run here/);
  // The same as if it had been recorded two minutes ago, for a node that has been restarted since.
  const signer = new Signer(secret, 'manycore');
  const headBytes = frame.readUInt32LE(0);
  const order = JSON.parse(frame.toString('utf8', 4, 4 + headBytes));
  order.time = Date.now() - 120_000; // as many digits
  frame.write(JSON.stringify(order), 4);
  signer.sign(frame, subject);
  await replay(frame, /stored 12\d s after it was signed: .* the clocks/);
  assert.equal(await pool.with({ durable: { id: 'recorded' } }).run(note, file, 'asked'), 'asked');
});

test('a task without an acknowledgement after 20 deliveries is given up', { skip }, async (t) => {
  const server = await startDurable(t);
  const caller = await durable(t, server);
  const called = caller.run(double, 1);
  const store = await openStore(t, server);
  for (let given = 0; given < 20; given += 1) {
    const task = await waitFor(() => store.nextTask());
    task.nak(); // as if its node had been lost
  }
  await startNode(t, server);
  await assert.rejects(called, { code: 'WORKER_EXITED' });
});

test('without JetStream durable tasks are refused', { skip }, async (t) => {
  const server = await startServer(t);
  const { cluster } = await joinBus(t, server, { secret });
  const missing = { code: 'CLUSTER_NOT_DURABLE' };
  const pool = new Pool({ cluster });
  t.after(() => pool.destroy());
  await assert.rejects(pool.with({ durable: true }).run(double, 1), missing);
  await assert.rejects(cluster.lendWorkers(1, { durable: true }), missing);
});

test('a task or result above the message limit of the server is refused', { skip }, async (t) => {
  const server = await startDurable(t);
  await startNode(t, server);
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

test('a full stream refuses tasks, and gets results when it has room', { skip }, async (t) => {
  const server = await startDurable(t);
  await openStore(t, server);
  await limitStream(t, server, 'manycore-tasks', 100);
  const { cluster } = await joinBus(t, server, { secret });
  const pool = new Pool({ cluster });
  t.after(() => pool.destroy());
  await assert.rejects(pool.with({ durable: true }).run(double, 1), {
    code: 'CLUSTER_NOT_DURABLE',
    message: /has no room for a durable task \(maximum bytes exceeded\): raise its max_file_store/,
  });
  await limitStream(t, server, 'manycore-tasks', -1);
  await limitStream(t, server, 'manycore-results', 10);
  const why = refusals(t);
  await cluster.lendWorkers(1, { durable: true });
  const kept = pool.with({ durable: { id: 'kept' } });
  assert.equal(await kept.run(double, 2), 4); // it arrives, stored or not
  await eventually(() => assert.equal(why.length, 1));
  assert.match(why[0] ?? '', /durable tasks wait: .* no room for the result of a durable task/);
  const undone = await openCounts(t, server);
  assert.equal(await undone(), 1);
  await limitStream(t, server, 'manycore-results', -1);
  await eventually(async () => assert.equal(await undone(), 0));
  assert.equal(await kept.run(double, 3), 4);
  assert.equal(why.length, 1);
});

test('a full server refuses new tasks, and runs those that it has', { skip }, async (t) => {
  const server = await startSmallServer(t);
  const { cluster } = await joinBus(t, server, { secret });
  const noRoom = { code: 'CLUSTER_NOT_DURABLE', message: /has no room for .* max_file_store/ };
  const caller = await durable(t, server);
  const stored = caller.run(double, 1);
  const undone = await openCounts(t, server);
  await eventually(async () => assert.equal(await undone(), 1));
  const map = cluster.map<string>('m');
  await assert.rejects(async () => {
    for (let n = 0; n < 20; n += 1) await map.set(`k${n}`, 'x'.repeat(10_000));
  }, noRoom);
  await assert.rejects(caller.run(double, 2), noRoom);
  await server.restart(); // the caller then stores its task again
  await assert.rejects(caller.run(double, 3), noRoom); // a new one is tried as often
  await startNode(t, server);
  assert.equal(await stored, 2);
});

test('waiting tasks end with their pool or their cluster', { skip }, async (t) => {
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

test('an unsigned earlier result is replaced', { skip }, async (t) => {
  const server = await startDurable(t);
  const store = await openStore(t, server);
  const { result } = taskSubjects('manycore', 'planted');
  await store.putResult(result, Buffer.alloc(100));
  await startNode(t, server);
  const pool = await openPool(t, server);
  const planted = pool.with({ durable: { id: 'planted' } });
  assert.equal(await planted.run(double, 4), 8);
  assert.equal(await planted.run(double, 5), 8);
});

test('a node that cannot start workers returns its tasks', { skip }, async (t) => {
  const server = await startDurable(t);
  const node = await startNode(t, server, { env: { MANYCORE_TEST_SICK: 'yes' } });
  const pool = await openPool(t, server);
  const heard = once(node, 'message');
  const called = pool.with({ durable: { id: 'sick' } }).run(double, 4);
  assert.match(String(await heard), /durable tasks wait: .*worker/);
  node.send('get well');
  assert.equal(await called, 8);
});

test('missing streams are created again, by callers and by nodes', { skip }, async (t) => {
  const server = await startDurable(t);
  const pool = await openPool(t, server);
  const lost = pool.with({ durable: true }).run(double, 1);
  const undone = await openCounts(t, server);
  await eventually(async () => assert.equal(await undone(), 1));
  const connection = await stranger(t, server.url);
  const answers: string[] = [];
  connection.subscribe('removed', {
    callback: (_error, { data }) => answers.push(Buffer.from(data).toString()),
  });
  const removeAll = async (): Promise<void> => {
    await eventually(() => undone());
    answers.length = 0;
    for (const name of ['manycore-tasks', 'manycore-results']) {
      const subject = `$JS.API.STREAM.DELETE.${name}`;
      connection.publish(subject, Buffer.alloc(0), { reply: 'removed' });
    }
    await eventually(() => assert.equal(answers.length, 2));
    for (const answer of answers) assert.match(answer, /"success":true/);
  };
  await removeAll();
  await server.restart(); // the caller then stores its task again
  await startNode(t, server);
  assert.equal(await lost, 2);
  await removeAll();
  assert.equal(await pool.with({ durable: true }).run(double, 2), 4);
});

test('a node with a result that it cannot store ends at its deadline', { skip }, async (t) => {
  const server = await startDurable(t);
  const { cluster } = await joinBus(t, server, { secret });
  const node = await cluster.lendWorkers(1, { durable: true, drainTimeoutMs: 500 });
  const caller = await durable(t, server);
  const file = notesFile(t);
  const running = caller.run(untilGo, file);
  await eventually(() => assert.deepEqual(notesIn(file), ['began']));
  await server.kill();
  writeFileSync(`${file}.go`, '');
  await node.close();
  await server.restart();
  await startNode(t, server);
  assert.equal(await running, 'done');
  assert.deepEqual(notesIn(file), ['began', 'began']); // another had to do it again
});
