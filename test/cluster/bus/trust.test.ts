// Trust in a cluster: members have the secret, and no frame is accepted twice; incompatible nodes are
// refused by name.

import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test } from 'node:test';
import { Signer } from '../../../src/cluster/bus/signature.js';
import { ClusterValues } from '../../../src/cluster/bus/values.js';
import type { NatsMessage } from '../../../src/cluster/nats/nats.js';
import {
  clusterFrame,
  parseNode,
  signatureBytes,
  writeFrame,
  writeNode,
} from '../../../src/cluster/protocol.js';
import { library, runProgram } from '../../faults/child.js';
import { waitFor, withDeadline } from '../../support/index.js';
import {
  eventually,
  joinBus,
  refusals,
  type Server,
  skip,
  startServer,
  stranger,
} from '../server.js';

const secret = 'nobody else knows this';

/** Joins, and rejects with the objection of another node, also when it comes after the join has ended. */
async function joinRefused(...args: Parameters<typeof joinBus>): Promise<void> {
  const { cluster } = await joinBus(...args);
  await withDeadline(cluster.closed, 30_000, 'the objection of another node');
}

test('messages without the secret are refused, and so are repetitions', { skip }, async (t) => {
  const server = await startServer(t);
  const [here, there] = [
    await joinBus(t, server, { secret }),
    await joinBus(t, server, { secret }),
  ];
  const got: unknown[] = [];
  there.bus.consumer('door', ({ body }) => void got.push(body));
  await there.bus.drained();
  const thief = await stranger(t, server.url);
  const stolen: NatsMessage[] = [];
  thief.subscribe('manycore.>', { callback: (_error, message) => void stolen.push(message) });
  await thief.flush();
  const why = refusals(t);
  here.bus.send('door', 'mine');
  await eventually(() => assert.deepEqual(got, ['mine']));
  const frame = (await waitFor(() => stolen.find(({ subject }) => subject.includes('door')))).data;
  const { reply = '' } = stolen.find(({ subject }) => subject.includes('door')) ?? {};
  thief.publish('manycore.send.door', frame, { reply }); // the same once more
  thief.publish('manycore.send.door', frame); // to be answered elsewhere
  thief.publish('manycore.publish.door', frame, { reply });
  thief.publish('manycore.send.door', frame.subarray(0, -32), { reply });
  thief.publish('manycore.send.door', Buffer.from('let me in'));
  thief.publish('manycore.send.door', new Uint8Array());
  const changed = Uint8Array.from(frame);
  changed[50] = (changed[50] ?? 0) ^ 1;
  thief.publish('manycore.send.door', changed, { reply });
  await eventually(() => assert.equal(why.length, 7));
  assert.match(why[0] ?? '', /sent again/);
  for (const each of why.slice(1)) assert.match(each, /not signed/);
  here.bus.send('door', 'mine, too');
  await eventually(() => assert.deepEqual(got, ['mine', 'mine, too']));
});

test('without a secret no code is accepted, and bytes that are no frame are refused', {
  skip,
}, async (t) => {
  const server = await startServer(t);
  const there = await joinBus(t, server);
  const got: unknown[] = [];
  there.bus.consumer('door', ({ body }) => void got.push(body));
  await there.bus.drained();
  const why = refusals(t);
  const thief = await stranger(t, server.url);
  const head = { kind: 1, sender: 'a'.repeat(32), number: 1, time: Date.now() };
  const code = [{ id: 1, bytes: Buffer.from('anything') }];
  for (const frame of [
    Buffer.from('let me in'),
    new Uint8Array(),
    writeFrame(head, code, new Uint8Array(10), 0),
  ]) {
    thief.publish('manycore.send.door', frame);
  }
  await eventually(() => assert.equal(why.length, 3));
  assert.match(why[2] ?? '', /a frame has functions or classes in it/);
  assert.deepEqual(got, []);
});

test('frames of the wrong kind are neither messages nor answers', {
  skip,
}, async (t) => {
  const server = await startServer(t);
  const { bus } = await joinBus(t, server);
  const got: unknown[] = [];
  bus.consumer('door', ({ body }) => void got.push(body));
  await bus.drained();
  const why = refusals(t);
  const other = await stranger(t, server.url);
  const { bytes } = new ClusterValues(false).encode('let me in');
  let number = 0;
  const frameOf = (kind: number): Buffer => {
    number += 1;
    return writeFrame({ kind, sender: 'a'.repeat(32), number, time: Date.now() }, [], bytes, 0);
  };
  const { message, messageWithHeaders, probe, reply, replyWithHeaders, failure } = clusterFrame;
  const noMessages = [0, reply, replyWithHeaders, failure, 8, 255];
  for (const kind of [...noMessages, message]) other.publish('manycore.send.door', frameOf(kind));
  await eventually(() => assert.deepEqual(got, ['let me in']));
  assert.equal(why.length, noMessages.length);
  assert.match(why.at(-1) ?? '', /a frame of kind 255 is no message/);
  const noAnswers = [0, message, messageWithHeaders, probe, 8, 255];
  other.subscribe('manycore.send.ask', {
    callback: (_error, { reply: to = '' }) => {
      for (const kind of [...noAnswers, reply]) other.publish(to, frameOf(kind));
    },
  });
  await other.flush();
  assert.equal((await bus.request('ask', 0)).body, 'let me in');
  assert.equal(why.length, noMessages.length + noAnswers.length);
  assert.match(why.at(-1) ?? '', /a frame of kind 255 is no answer/);
});

test('a node of another version is refused by its name', { skip }, async (t) => {
  const server = await startServer(t);
  const old = await stranger(t, server.url);
  const own = { node: 'a'.repeat(24), host: 'old-host', pid: 77, version: '9.9.9' };
  const message = { ...own, protocol: 99, startedAt: 0, time: Date.now(), isSigned: false };
  old.subscribe('manycore.nodes', {
    callback: (_error, { data }) => {
      const { node, type } = JSON.parse(Buffer.from(data).toString());
      if (type === 'joined') {
        old.publish(`manycore.node.${node}`, writeNode({ type: 'present', ...message }));
      }
    },
  });
  await old.flush();
  await assert.rejects(joinRefused(t, server), {
    code: 'CLUSTER_REFUSED',
    message: /the node at old-host, process 77, runs manycore 9\.9\.9, this one manycore \d/,
  });
});

test('a node that is refused after it has joined gets the reason, and its program can end', {
  skip,
}, async (t) => {
  const server = await startServer(t);
  const earlier = await stranger(t, server.url);
  const own = { node: 'a'.repeat(24), host: 'first-host', pid: 77, version: '9.9.9' };
  const message = { ...own, protocol: 1, startedAt: 0, isSigned: true };
  earlier.subscribe('manycore.nodes', {
    callback: (_error, { data }) => {
      const { type } = JSON.parse(Buffer.from(data).toString());
      if (type !== 'alive') return; // a node sends that after it has joined
      earlier.publish('manycore.nodes', writeNode({ type: 'alive', ...message, time: Date.now() }));
    },
  });
  await earlier.flush();
  const { stdout, stderr, status } = await runProgram(
    t,
    `import { bus, cluster } from '${library}';
    const node = await cluster({ nats: '${server.url}' });
    console.log('joined');
    bus.consumer('who', (message) => message.reply('here'));
    await node.closed.catch(({ code, message }) => console.log(code, message));
    console.log((await bus.request('who', 0)).body);`,
  );
  const [joined, why, who] = stdout.split('\n');
  assert.equal(joined, 'joined');
  assert.match(
    why ?? '',
    /^CLUSTER_REFUSED the node at first-host, process 77, has another secret/,
  );
  assert.equal(who, 'here', 'its bus is one machine again');
  assert.deepEqual([stderr, status], ['', 0]);
});

/** Sends a server's report of no subscriber to `subject`, until the server has received it. */
async function sayNobody({ port }: Server, subject: string): Promise<void> {
  const status = 'NATS/1.0 503\r\n\r\n';
  const head = `HPUB ${subject} ${status.length} ${status.length}`;
  const socket = connect(port, '127.0.0.1');
  socket.write(`CONNECT {"verbose":false,"headers":true}\r\n${head}\r\n${status}\r\nPING\r\n`);
  let said = '';
  socket.on('data', (bytes) => {
    said += bytes;
  });
  await waitFor(() => said.includes('PONG\r\n'));
  socket.destroy();
}

test('without the secret no message removes a node that still sends, nor a forged report of the server', {
  skip,
}, async (t) => {
  const server = await startServer(t);
  const [here, there] = [
    await joinBus(t, server, { secret }),
    await joinBus(t, server, { secret }),
  ];
  await eventually(() => assert.equal(here.cluster.nodes.length, 1));
  const why = refusals(t);
  const thief = await stranger(t, server.url);
  const { id: node, host, pid, version } = there.cluster.node;
  const own = { node, host, pid, version, protocol: 1, startedAt: Date.now() };
  thief.publish(
    'manycore.nodes',
    writeNode({ type: 'left', ...own, time: Date.now(), isSigned: true }),
  );
  await eventually(() => assert.match(why.join(), /another secret/));
  let reply: string | undefined;
  thief.subscribe('manycore.send.>', {
    callback: (_error, message) => {
      reply = message.reply;
    },
  });
  await thief.flush();
  here.bus.send('any', 0);
  const inbox = (await waitFor(() => reply)).replace(/\.\d+$/, '');
  const left = t.mock.fn();
  here.cluster.on('leave', left);
  await sayNobody(server, `${inbox}.node.${node}`);
  await here.bus.drained(); // it has arrived
  assert.equal(left.mock.callCount(), 0);
  assert.deepEqual(here.cluster.nodes, [there.cluster.node]);
});

test('a node without the secret leaves, and one with another secret is reported on both sides', {
  skip,
}, async (t) => {
  const server = await startServer(t);
  const first = await joinBus(t, server, { secret });
  const refused = { code: 'CLUSTER_REFUSED', message: /has another secret/ };
  await assert.rejects(joinRefused(t, server), refused);
  const { stderr } = await runProgram(
    t,
    `import { cluster } from '${library}';
    const warned = new Promise((resolve) => process.once('warning', resolve));
    const node = await cluster({ nats: '${server.url}', secret: '${secret}!' });
    await warned;
    console.log(node.nodes.length);
    await node.close();`,
  );
  const { host } = first.cluster.node;
  assert.ok(
    stderr.includes(`[CLUSTER_REFUSED] Warning: the node at ${host}, process ${process.pid},`),
  );
  const second = await joinBus(t, server, { secret });
  await eventually(() => assert.deepEqual(first.cluster.nodes, [second.cluster.node]));
});

test('greetings without the secret make no young node leave, and are reported once a minute', {
  skip,
}, async (t) => {
  const server = await startServer(t);
  const why = refusals(t);
  const thief = await stranger(t, server.url);
  const first = await joinBus(t, server, { secret });
  const own = { host: 'forged', pid: 1, version: '0', startedAt: 0 };
  const greet = async (protocol: number): Promise<void> => {
    const head = { type: 'present', node: 'a'.repeat(24), protocol, ...own } as const;
    const text = writeNode({ ...head, time: Date.now(), isSigned: true });
    for (const bytes of [text, Buffer.concat([text, Buffer.alloc(32)])]) {
      for (let times = 0; times < 3; times += 1) thief.publish('manycore.nodes', bytes);
    }
    await thief.flush();
  };
  await greet(1);
  await greet(99);
  const second = await joinBus(t, server, { secret });
  await greet(1);
  await eventually(() => assert.deepEqual(first.cluster.nodes, [second.cluster.node]));
  await eventually(() => assert.equal(why.length, 2)); // one of each node
  for (const each of why) assert.match(each, /the node at forged, process 1, has another secret/);
  second.bus.consumer('still', (message) => message.reply('here'));
  await second.bus.drained();
  assert.equal((await first.bus.request('still', 0)).body, 'here');
});

test('a signed greeting of another version makes the later node leave', { skip }, async (t) => {
  const server = await startServer(t);
  const old = await stranger(t, server.url);
  const own = { node: 'a'.repeat(24), host: 'old-host', pid: 77, version: '9.9.9' };
  const message = { ...own, protocol: 99, startedAt: 0, time: Date.now(), isSigned: true };
  old.subscribe('manycore.nodes', {
    callback: (_error, { data }) => {
      const { node, type } = parseNode(data);
      if (type !== 'joined') return;
      const text = writeNode({ type: 'present', ...message });
      const bytes = Buffer.concat([text, Buffer.alloc(signatureBytes)]);
      new Signer(secret, 'manycore').sign(bytes, 'node');
      old.publish(`manycore.node.${node}`, bytes);
    },
  });
  await old.flush();
  await assert.rejects(joinRefused(t, server, { secret }), {
    code: 'CLUSTER_REFUSED',
    message: /the node at old-host, process 77, runs manycore 9\.9\.9, this one manycore \d/,
  });
});
