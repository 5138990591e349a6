// The bus between programs of one machine: who joins, who is refused, what is left behind. Each bus here is a
// program of its own for the others; several processes: programs.slow.test.ts.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { reservedPrefix } from '../../../src/bus/index.js';
import { fillClusterOptions } from '../../../src/cluster/index.js';
import { localProtocol } from '../../../src/cluster/local/greeting.js';
import { defer } from '../../../src/lib/index.js';
import { cluster, Pool } from '../../../src/public.js';
import { waitFor } from '../../support/index.js';
import { joinHere, useFolder } from './buses.js';

const folder = useFolder();
const socketsOf = (name: string): string[] => readdirSync(join(folder, `bus-${name}`));

test('each program has the others as nodes, until they leave, and no socket stays', async (t) => {
  const first = await joinHere(t, 'nodes');
  const second = await joinHere(t, 'nodes');
  const elsewhere = await joinHere(t, 'elsewhere');
  assert.deepEqual(first.cluster.nodes, [second.cluster.node]);
  assert.deepEqual(second.cluster.nodes, [first.cluster.node]);
  assert.deepEqual(elsewhere.cluster.nodes, []);
  const joined = once(first.cluster, 'join');
  const third = await joinHere(t, 'nodes');
  assert.deepEqual(await joined, [third.cluster.node]);
  const left = once(first.cluster, 'leave');
  const { node } = third.cluster;
  await third.cluster.close();
  await third.cluster.closed;
  assert.deepEqual(await left, [node]);
  await waitFor(() => second.cluster.nodes.length === 1);
  assert.equal(first.cluster.nodes.length, 1);
  await Promise.all([first.cluster.close(), second.cluster.close()]);
  assert.deepEqual(socketsOf('nodes'), []);
});

test('a program that leaves reports no end of others, which live on', async (t) => {
  const [here, there] = [await joinHere(t, 'leaves'), await joinHere(t, 'leaves')];
  there.bus.consumer('far', (message) => message.reply('there'));
  assert.equal((await here.bus.request('far', 0)).body, 'there');
  const seen: unknown[] = [];
  here.cluster.on('leave', (node) => seen.push(node));
  here.bus.monitor('far', (end) => seen.push(end));
  const left = once(there.cluster, 'leave');
  await here.cluster.close();
  assert.deepEqual(await left, [here.cluster.node]);
  await here.cluster.closed;
  await assert.rejects(here.bus.request('far', 0), { code: 'BUS_NO_HANDLERS' });
  assert.deepEqual([seen, here.cluster.nodes], [[], []]);
});

test('programs that join at once have one link each', async (t) => {
  const count = 6;
  const all = await Promise.all(Array.from({ length: count }, () => joinHere(t, 'at-once')));
  const got: unknown[][] = all.map(() => []);
  for (const [at, { bus }] of all.entries()) bus.consumer('all', ({ body }) => got[at]?.push(body));
  await waitFor(() => all.every(({ cluster }) => cluster.nodes.length === count - 1));
  const everyone = all.map((_, at) => at);
  // Announcements of consumers come before the answer that follows them.
  for (const [at, { bus }] of all.entries())
    bus.consumer(`here ${at}`, (message) => message.reply(1));
  for (const { bus } of all) {
    for (const at of everyone) {
      await waitFor(() => bus.request(`here ${at}`, 0).catch(() => undefined));
    }
  }
  for (const [at, { bus }] of all.entries()) bus.publish('all', at);
  await waitFor(() => got.every((each) => each.length >= count));
  for (const each of got) assert.deepEqual(each.toSorted(), everyone);
});

test('consumers of one program alone are not reached from another', async (t) => {
  const [here, there] = [await joinHere(t, 'reserved'), await joinHere(t, 'reserved')];
  const answer = (message: { reply: (body: unknown) => void }): void => message.reply('there');
  there.bus.consumer(`${reservedPrefix}director`, answer);
  there.bus.consumer('near', answer, { isLocal: true });
  there.bus.consumer('far', answer);
  assert.equal((await here.bus.request('far', 0)).body, 'there'); // announced after the others
  for (const address of [`${reservedPrefix}director`, 'near']) {
    await assert.rejects(here.bus.request(address, 0), { code: 'BUS_NO_HANDLERS' });
  }
  await assert.rejects(here.bus.request('far', 0, { local: 'only' }), { code: 'BUS_NO_HANDLERS' });
  here.bus.consumer('far', (message) => message.reply('here'));
  for (let at = 0; at < 4; at += 1) {
    assert.equal((await here.bus.request('far', 0, { local: 'prefer' })).body, 'here');
  }
  const bodies = [await here.bus.request('far', 0), await here.bus.request('far', 0)];
  assert.deepEqual(bodies.map(({ body }) => body).sort(), ['here', 'there']);
});

test('streams, functions and classes go to other programs', async (t) => {
  const [here, there] = [await joinHere(t, 'values'), await joinHere(t, 'values')];
  there.bus.acceptStreams('upper', (stream) => {
    stream.on('data', (text) => stream.write(String(text).toUpperCase()));
    stream.on('end', () => stream.end());
  });
  there.bus.consumer<(n: number) => number>('call', (message) => message.reply(message.body(2)));
  const three = 3;
  assert.equal((await here.bus.request('call', (n: number) => n * three)).body, 6);
  const stream = await here.bus.openStream('upper');
  stream.end('abc');
  assert.deepEqual(await stream.toArray(), ['ABC']);
});

/** A program of another kind that listens as a member: it answers each first line. */
async function pretend(
  t: TestContext,
  name: string,
  answer: (socket: Socket) => void,
  id = '000000000000-0',
) {
  const path = join(folder, `bus-${name}`, `${id}-${process.pid}.sock`);
  mkdirSync(join(folder, `bus-${name}`), { recursive: true, mode: 0o700 });
  chmodSync(folder, 0o700);
  const sockets: Socket[] = [];
  const server: Server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => {});
    createInterface({ input: socket }).once('line', () => answer(socket));
  });
  server.listen(path);
  await once(server, 'listening');
  t.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
    rmSync(path, { force: true });
  });
}

test('a program that another one refuses rejects, and leaves nothing behind', async (t) => {
  await pretend(t, 'refused', (socket) => {
    socket.end(`${JSON.stringify({ type: 'refused', why: 'it is too old' })}\n`);
  });
  await assert.rejects(joinHere(t, 'refused'), {
    code: 'CLUSTER_REFUSED',
    message: /it is too old/,
  });
  assert.deepEqual(socketsOf('refused'), [`000000000000-0-${process.pid}.sock`]);
});

test('a program that closes without an answer, or answers anything, ends no other', async (t) => {
  let answers = 0;
  await pretend(t, 'silent', (socket) => {
    answers += 1;
    socket.destroy();
  });
  const { cluster } = await joinHere(t, 'silent');
  assert.deepEqual([answers, cluster.nodes.length], [1, 0]);
});

/** Sends this as first line to the only member, and resolves with the first line of the answer. */
async function ask(t: TestContext, name: string, line: string): Promise<string | undefined> {
  const [file = ''] = socketsOf(name);
  const socket = connect(join(folder, `bus-${name}`, file));
  t.after(() => socket.destroy());
  socket.write(`${line}\n`);
  const lines = createInterface({ input: socket });
  const [answer] = await Promise.race([once(lines, 'line'), once(lines, 'close')]);
  socket.destroy();
  return answer;
}

test('a greeting of another version or bus is refused in one sentence', async (t) => {
  const { cluster } = await joinHere(t, 'greetings');
  const left = once(cluster, 'leave');
  const greeting = {
    ...{ protocol: localProtocol, version: '9.9.9', name: 'greetings', node: 'f00', member: 0 },
    ...{ host: 'vm', pid: 1, sharesMemory: false },
  };
  const hello = (changes: object): string =>
    JSON.stringify({ type: 'hello', greeting: { ...greeting, ...changes } });
  const older = await ask(t, 'greetings', hello({ protocol: 99 }));
  assert.match(
    String(older),
    /"refused".*runs manycore .* this one manycore 9\.9\.9: these versions/,
  );
  const other = await ask(t, 'greetings', hello({ name: 'another' }));
  assert.match(String(other), /"refused".*is on the bus greetings, and this one on another/);
  for (const wrong of ['{}', 'no JSON', hello({ node: 5 }), '{"type":"sent","token":"none"}']) {
    assert.equal(await ask(t, 'greetings', wrong), undefined, wrong);
  }
  assert.match(String(await ask(t, 'greetings', hello({}))), /"welcome"/);
  const [{ version }] = await left;
  assert.equal(version, '9.9.9');
});

test('a member that is answered to be connected takes the connection of the other one', async (t) => {
  const node = 'f'.repeat(12); // larger than that of a program
  const greeting = {
    ...{ protocol: localProtocol, version: '9.9.9', name: 'turns', node, member: 0 },
    ...{ host: 'vm', pid: 1, sharesMemory: false },
  };
  // It has a link to an earlier loop with the number of this one, and connects when it sees the end of that.
  const asked = defer<void>();
  const accept = (socket: Socket): void => {
    socket.end(`${JSON.stringify({ type: 'connected' })}\n`);
    asked.resolve();
  };
  await pretend(t, 'turns', accept, `${node}-0`);
  let isJoined = false;
  const joining = joinHere(t, 'turns').then(() => {
    isJoined = true;
  });
  await asked.promise;
  const hello = JSON.stringify({ type: 'hello', greeting });
  let answer = '';
  while (!isJoined && !answer.includes('"welcome"')) answer = String(await ask(t, 'turns', hello));
  assert.match(answer, /"welcome"/);
  assert.equal(isJoined, false); // it was no time limit that ended the attempt
  await joining;
});

test('a socket that a killed program left behind is removed', async (t) => {
  const path = join(folder, 'bus-left');
  mkdirSync(path, { mode: 0o700 });
  const left = join(path, '0123456789ab-0-1.sock');
  const server = createServer().listen(`${left}.made`);
  await once(server, 'listening');
  renameSync(`${left}.made`, left); // closing removes only what it has made
  server.close();
  await joinHere(t, 'left');
  assert.equal(existsSync(left), false);
});

test('a folder that others can enter is refused, and a name without room for a socket', async (t) => {
  const path = join(folder, 'bus-open');
  mkdirSync(path, { mode: 0o700 });
  chmodSync(path, 0o755);
  const refused = { code: 'RUNTIME_FOLDER_REFUSED', message: /bus-open is not a private folder/ };
  await assert.rejects(joinHere(t, 'open'), refused);
  const long = {
    code: 'CLUSTER_REFUSED',
    message: /is too long for a socket: set XDG_RUNTIME_DIR/,
  };
  await assert.rejects(joinHere(t, 'n'.repeat(90)), long);
});

test('options that belong to a server are refused on a local bus', async (t) => {
  const invalid = (message: RegExp) => ({ code: 'OPTION_INVALID', message });
  const wrong: readonly [object, RegExp][] = [
    [{}, /^nats is undefined.* transport: 'local'/],
    [{ transport: 'unix' }, /^transport is "unix".*local/],
    [{ transprot: 'local' }, /transprot/],
    [{ transport: 'local', nats: 'nats://localhost' }, /^nats .*left out with transport: 'local'/],
    [{ transport: 'local', secret: 'x'.repeat(20) }, /^secret .*left out with transport: 'local'/],
    [{ transport: 'local', local: 'prefer' }, /^local .*left out with transport: 'local'/],
    [{ transport: 'local', name: '../x' }, /^name .*letters/],
  ];
  for (const [options, message] of wrong) {
    assert.throws(() => fillClusterOptions(options), invalid(message));
    await assert.rejects(cluster(options), invalid(message));
  }
  const { cluster: joined } = await joinHere(t, 'without');
  const needsServer = invalid(/over NATS only, .*: give cluster\(\{ nats \}\)/);
  await assert.rejects(joined.lendWorkers(1), needsServer);
  assert.throws(() => new Pool({ cluster: joined }), needsServer);
  assert.throws(() => joined.map('m'), needsServer);
  assert.throws(() => joined.lock('l'), needsServer);
  assert.throws(() => joined.counter('c'), needsServer);
});
