// Shared data in a cluster whose server is away, restarts or was changed by others, and whose owners of locks die
// or are stopped.

import assert from 'node:assert/strict';
import { type SpawnOptions, spawn } from 'node:child_process';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DataSpace } from '../../src/shared-data/index.js';
import { type Member, startMember } from '../cluster/member.js';
import {
  joinBus,
  limitStream,
  refusals,
  type Server,
  skip,
  startServer,
  startSmallServer,
  stranger,
} from '../cluster/server.js';
import { killOne, waitFor, withDeadline } from '../support/index.js';

const secret = 'nobody else knows this';
const timedOut = { code: 'SHARED_DATA_TIMED_OUT' };
const closed = { code: 'CLUSTER_CLOSED' };

async function start(t: TestContext): Promise<{ server: Server; data: DataSpace }> {
  const server = await startServer(t, ['-js']);
  const { cluster } = await joinBus(t, server, { secret });
  return { server, data: cluster.data };
}

/** Starts another program in the cluster, on this machine. */
function startOther(t: TestContext, { url }: Server): Promise<Member> {
  const start = ([program = '', ...args]: readonly string[], options: SpawnOptions) => {
    const child = spawn(program, args, options);
    t.after(() => child.kill('SIGKILL'));
    return child;
  };
  return startMember({ start }, { nats: url, secret });
}

test('calls settle with a code while the server is away, and go on when it is back', {
  skip,
}, async (t) => {
  const { server, data } = await start(t);
  const map = data.map<number>('m', { timeoutMs: 300 });
  const patient = data.map<number>('m', { timeoutMs: 30_000 });
  await patient.set('k', 1);
  const lease = await data.lock('held').acquire({ leaseMs: 400 });
  await server.kill();
  const message =
    'a read of "k" in the bucket manycore-map-m took more than 300 ms: the NATS server is away or slow';
  await assert.rejects(map.get('k'), { ...timedOut, message });
  await assert.rejects(map.set('k', 9), timedOut);
  await assert.rejects(data.counter('c', { timeoutMs: 300 }).add(), timedOut);
  await assert.rejects(data.lock('l').acquire({ timeoutMs: 300 }), timedOut);
  await assert.rejects(data.lock('l', { timeoutMs: 300 }).acquire({ timeoutMs: 0 }), timedOut);
  await assert.rejects(async () => {
    for await (const key of map.keys()) assert.fail(key);
  }, timedOut);
  await waitFor(() => lease.signal.aborted);
  assert.equal(lease.signal.reason.code, 'SHARED_LOCK_LOST');
  await lease.release();
  const waiting = patient.get('k');
  const locking = data.lock('l', { timeoutMs: 300 }).acquire({ timeoutMs: 30_000 });
  await assert.rejects(map.get('k'), timedOut);
  await server.restart();
  assert.equal(await waiting, 1);
  await (await locking).release();
  assert.equal(await patient.set('k', 2), 2); // the write that timed out was not sent later
});

test('a watch has the last value after its server was away', { skip }, async (t) => {
  const { server, data } = await start(t);
  const map = data.map<number>('m');
  const copy = new Map<string, number>();
  const over = new AbortController();
  const watching = assert.rejects(
    async () => {
      for await (const change of map.watch({ signal: over.signal })) {
        if (change.type === 'set') copy.set(change.key, change.value);
        else copy.delete(change.key);
      }
    },
    { code: 'ABORTED' },
  );
  await map.set('a', 1);
  await map.set('b', 1);
  await waitFor(() => copy.size === 2);
  for (let round = 2; round <= 3; round += 1) {
    await server.restart();
    const other = (await joinBus(t, server, { secret })).cluster.map<number>('m');
    await other.set('a', round);
    await (round === 2 ? other.delete('b') : other.set('b', round));
    await waitFor(() => copy.get('a') === round && copy.get('b') === (round === 2 ? undefined : 3));
  }
  // Somebody deletes the bucket: the watch goes on in the one that takes its place.
  copy.clear();
  const connection = await stranger(t, server.url);
  const subject = '$JS.API.STREAM.DELETE.KV_manycore-map-m';
  connection.publish(subject, new Uint8Array());
  await connection.flush();
  await waitFor(async () => (await map.get('a')) === undefined);
  await map.set('new', 1);
  await waitFor(() => copy.get('new') === 1);
  over.abort();
  await watching;
});

test('a reader of a watch that does not read holds little, and gets each last value', {
  skip,
}, async (t) => {
  const { server, data } = await start(t);
  const reader = await startOther(t, server);
  const map = data.map<string>('m');
  await map.set('first', '');
  await reader.ask(async ({ cluster, kept }) => {
    kept['changes'] = cluster.map('m').watch()[Symbol.asyncIterator]();
    await kept['changes'].next();
  });
  const text = 'x'.repeat(500_000);
  for (let round = 0; round < 20; round += 1) {
    await Promise.all(Array.from({ length: 10 }, (_, at) => map.set(`k${at}`, `${round} ${text}`)));
  }
  const heldBytes = await reader.ask(async ({ cluster }) => {
    await cluster.map('m').get('first');
    process.getBuiltinModule('node:v8').setFlagsFromString('--expose-gc');
    process.getBuiltinModule('node:vm').runInNewContext('gc')();
    return process.memoryUsage().arrayBuffers;
  });
  assert.ok(heldBytes < 50_000_000, `${heldBytes} of 100,000,000 bytes are held`);
  const last = await reader.ask(async ({ kept }) => {
    const found: Record<string, string> = {};
    while (Object.values(found).filter((round) => round === '19').length < 10) {
      const { value } = await kept['changes'].next();
      found[value.key] = value.value.split(' ')[0];
    }
    await kept['changes'].return();
    return Object.keys(found).length;
  });
  assert.equal(last, 10);
});

test('a cluster that is left ends calls and watches', { skip }, async (t) => {
  const server = await startServer(t, ['-js']);
  const { cluster } = await joinBus(t, server, { secret });
  const map = cluster.map<number>('m');
  await map.set('k', 1);
  const lease = await cluster.lock('l').acquire();
  const waiting = assert.rejects(cluster.lock('l').acquire({ timeoutMs: Infinity }), closed);
  const changes = map.watch()[Symbol.asyncIterator]();
  await changes.next();
  const next = assert.rejects(changes.next(), closed);
  await cluster.close();
  await Promise.all([waiting, next]);
  await assert.rejects(map.get('k'), closed);
  await assert.rejects(cluster.counter('c').add(), closed);
  await assert.rejects(cluster.lock('l').acquire(), closed);
  await lease.release();
});

test('a watch that is given up as it opens leaves no timer when the cluster is left', {
  skip,
}, async (t) => {
  const server = await startServer(t, ['-js']);
  const timers = (): number =>
    process.getActiveResourcesInfo().filter((what) => what === 'Timeout').length;
  const before = timers();
  for (let ms = 0; ms < 20; ms += 1) {
    const { cluster } = await joinBus(t, server, { secret });
    const map = cluster.map('m');
    await map.set('a', 1);
    const abort = new AbortController();
    const watching = map.watch({ signal: abort.signal })[Symbol.asyncIterator]();
    const first = watching.next().catch(() => {});
    await sleep(ms % 10);
    abort.abort();
    await first;
    await cluster.close();
  }
  await waitFor(() => timers() <= before);
});

test('a server without JetStream is named', { skip }, async (t) => {
  const server = await startServer(t);
  const { cluster } = await joinBus(t, server);
  const refused = { code: 'CLUSTER_NOT_DURABLE', message: /shared data need JetStream.*-js/ };
  await assert.rejects(cluster.map('m').get('k'), refused);
  await assert.rejects(cluster.lock('l').acquire(), refused);
});

test('a server without room refuses writes with a way out, and still reads', {
  skip,
}, async (t) => {
  const server = await startSmallServer(t);
  const { cluster } = await joinBus(t, server, { secret });
  const map = cluster.map<string>('m');
  const lease = await cluster.lock('held').acquire({ leaseMs: 1000 });
  await cluster.counter('old').add();
  await map.set('k', 'x');
  await limitStream(t, server, 'KV_manycore-map-m', 1000);
  const isFull = (why: RegExp) => ({ code: 'CLUSTER_NOT_DURABLE', message: why });
  const wayOut = /no room for a write of "l" .*\(maximum bytes exceeded\): raise .* max_bytes/;
  await assert.rejects(map.set('l', 'x'.repeat(2000)), isFull(wayOut));
  const other = cluster.map<string>('other');
  await assert.rejects(
    async () => {
      for (let n = 0; n < 20; n += 1) await other.set(`k${n}`, 'x'.repeat(10_000));
    },
    isFull(/no room for a write of "k\d+" .*\(insufficient resources\): raise its max_file_store/),
  );
  await assert.rejects(cluster.counter('old').add(), isFull(/no room for a write of "old"/));
  await assert.rejects(cluster.lock('l').acquire(), isFull(/no room for a write of "l"/));
  await assert.rejects(map.delete('k'), isFull(/no room for a deletion of "k"/));
  await lease.release(); // the lease runs out
  assert.equal(await map.get('k'), 'x');
  assert.equal(await cluster.counter('old').get(), 1);
});

test('calls are repeated while servers elect a leader', { skip }, async (t) => {
  const server = await startServer(t);
  const { cluster } = await joinBus(t, server);
  const leaderless = await stranger(t, server.url);
  const error = {
    code: 503,
    err_code: 10008,
    description: 'JetStream system temporarily unavailable',
  };
  let requests = 0;
  const callback = (_: Error | null, message: { readonly reply?: string }): void => {
    requests += 1;
    leaderless.publish(message.reply ?? '', Buffer.from(JSON.stringify({ error })));
  };
  leaderless.subscribe('$JS.API.>', { callback });
  await leaderless.flush();
  await assert.rejects(cluster.map('m', { timeoutMs: 1500 }).set('k', 1), timedOut);
  assert.ok(requests > 1);
  await assert.rejects(cluster.lock('l', { timeoutMs: 300 }).acquire({ timeoutMs: 900 }), timedOut);
});

test('without a secret data travel, and functions do not', { skip }, async (t) => {
  const server = await startServer(t, ['-js']);
  const map = (await joinBus(t, server)).cluster.map<unknown>('m');
  await map.set('k', [1]);
  assert.deepEqual(await map.get('k'), [1]);
  await assert.rejects(
    map.set('k', () => 1),
    { code: 'CLUSTER_UNSIGNED' },
  );
});

test('values that are not signed for their key are refused', { skip }, async (t) => {
  const { server, data } = await start(t);
  const why = refusals(t);
  const map = data.map<number>('m');
  await map.set('good', 1);
  await map.set('bad', 2);
  const connection = await stranger(t, server.url);
  const { data: signed } = await new Promise<{ data: Uint8Array }>((resolve) => {
    connection.subscribe('$KV.>', { callback: (_, message) => resolve(message) });
    void connection.flush().then(() => map.set('source', 3));
  });
  const refused = { code: 'CLUSTER_REFUSED', message: /"bad".*not signed/ };
  const cut = signed.subarray(0, -32);
  for (const bytes of [signed, cut, new Uint8Array(), Buffer.from(signed).fill(1, 0, 1)]) {
    connection.publish('$KV.manycore-map-m.bad', bytes);
    await connection.flush();
    await waitFor(async () => Object(await map.get('bad').catch((error) => error)).code);
    await assert.rejects(map.get('bad'), refused);
  }
  const found: unknown[] = [];
  for await (const entry of map.entries()) found.push(entry);
  assert.deepEqual(found.sort(), [
    ['good', 1],
    ['source', 3],
  ]);
  assert.match(why.join(), /"bad" .* is not signed/);
  connection.publish('$KV.manycore-shared-locks.forged', cut);
  connection.publish('$KV.manycore-shared-counters.forged', cut);
  await connection.flush();
  assert.equal(await data.counter('forged').get(), 0); // its bucket was made by this call
});

test('programs compete, and owners that die or stop lose the lock', { skip }, async (t) => {
  const { server, data } = await start(t);
  const [first, second] = await Promise.all([startOther(t, server), startOther(t, server)]);
  const adding = [first, second].map((each) =>
    each.ask(async ({ cluster }) => {
      let firsts = 0;
      for (let at = 0; at < 25; at += 1) {
        await cluster.counter('hits').add(2);
        if ((await cluster.map('firsts').setIfAbsent(`${at}`, 1)) !== undefined) firsts += 1;
      }
      return firsts;
    }),
  );
  const firsts = await Promise.all(adding);
  assert.equal(await data.counter('hits').get(), 100);
  assert.equal(
    firsts.reduce((sum, each) => sum + each, 0),
    25,
  );

  const acquire = (member: Member) =>
    member.ask(async ({ cluster, kept }) => {
      kept['lease'] = await cluster.lock('l').acquire({ leaseMs: 500, timeoutMs: 20_000 });
      return Number(kept['lease'].token);
    });
  const token = await acquire(first);
  killOne(first.pid, 'SIGKILL');
  const later = await acquire(second);
  assert.ok(later > token);
  killOne(second.pid, 'SIGSTOP');
  const own = await data.lock('l').acquire({ timeoutMs: 20_000 });
  assert.ok(own.token > later);
  killOne(second.pid, 'SIGCONT');
  await waitFor(() => second.ask(({ kept }) => kept['lease'].signal.aborted));
  assert.equal(own.signal.aborted, false);
  await own.release();
  const again = await withDeadline(acquire(second), 20_000, 'the lock was not free');
  assert.ok(again > own.token);
});
