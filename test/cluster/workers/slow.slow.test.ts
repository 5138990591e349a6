// A slow server or network: messages are late, or stop for a while.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { announcements } from '../../../src/lib/index.js';
import { startProxy } from '../proxy.js';
import { eventually, joinBus, refusals, skip, startConfigured, startServer } from '../server.js';

const secret = 'nobody else knows this';

function upTo(end: number, start = 0): number[] {
  return Array.from({ length: end - start }, (_, at) => start + at);
}

/** Events of the connections of this process: the number of possibly lost messages, and of reconnects. */
function connections(t: TestContext): { readonly lost: number[]; back: number } {
  const told = { lost: [] as number[], back: 0 };
  const noteLost = (message: unknown): void => void told.lost.push(Object(message).unconfirmed);
  const noteBack = (): void => {
    told.back += 1;
  };
  announcements.clusterLost.subscribe(noteLost);
  announcements.clusterBack.subscribe(noteBack);
  t.after(() => {
    announcements.clusterLost.unsubscribe(noteLost);
    announcements.clusterBack.unsubscribe(noteBack);
  });
  return told;
}

test('a distant server: requests are answered, many at a time, without events', {
  skip,
}, async (t) => {
  const server = await startServer(t);
  const proxy = await startProxy(t, server, 30);
  const [here, there] = [await joinBus(t, proxy, { secret }), await joinBus(t, proxy, { secret })];
  const told = connections(t);
  const got: unknown[] = [];
  there.bus.consumer('count', ({ body }) => void got.push(body));
  there.bus.consumer('echo', (message) => message.reply(message.body));
  await there.bus.drained();
  for (const sent of upTo(1000)) assert.equal(here.bus.send('count', sent), true);
  const answers = await Promise.all(upTo(200).map((asked) => here.bus.request('echo', asked)));
  assert.deepEqual(
    answers.map(({ body }) => body),
    upTo(200),
  );
  await eventually(() => assert.deepEqual(got, upTo(1000)));
  assert.deepEqual(told, { lost: [], back: 0 });
});

test('a stalled connection: senders are slowed down, and all messages arrive in order', {
  skip,
}, async (t) => {
  const server = await startServer(t);
  const proxy = await startProxy(t, server);
  const [here, there] = [await joinBus(t, proxy, { secret }), await joinBus(t, server, { secret })];
  const told = connections(t);
  let count = 0;
  there.bus.consumer<number>('count', ({ body }) => {
    assert.equal(body, count);
    count += 1;
  });
  there.bus.consumer('echo', (message) => message.reply(message.body));
  await there.bus.drained();
  proxy.hold();
  await assert.rejects(here.bus.request('echo', 0, { timeoutMs: 50 }), { code: 'BUS_TIMEOUT' });
  let sent = 0;
  while (here.bus.send('count', sent)) sent += 1;
  sent += 1; // it was accepted
  let isOver = false;
  const drained = here.bus.drained().then(() => {
    isOver = true;
  });
  assert.throws(
    () => {
      for (; sent < 1_000_000; sent += 1) here.bus.send('count', sent);
    },
    { code: 'BUS_FULL', message: /reads more slowly/ },
  );
  assert.equal(isOver, false);
  proxy.release();
  await drained;
  await eventually(() => assert.equal(count, sent));
  assert.equal((await here.bus.request('echo', 'again')).body, 'again');
  assert.equal(here.bus.stats.undelivered, 0);
  assert.deepEqual(told, { lost: [], back: 0 });
});

test('a node that reads too slowly for the server loses its connection, and reconnects', {
  skip,
}, async (t) => {
  const server = await startConfigured(t, 'write_deadline: "500ms"');
  const proxy = await startProxy(t, server);
  const [here, there] = [await joinBus(t, server, { secret }), await joinBus(t, proxy, { secret })];
  const told = connections(t);
  const got: number[] = [];
  there.bus.consumer<{ at: number }>('count', ({ body }) => void got.push(body.at));
  there.bus.consumer('is it there', () => {});
  await there.bus.drained();
  proxy.hold();
  const bytes = new Uint8Array(500_000);
  let at = 0;
  await eventually(async () => {
    for (let more = 0; more < 20; more += 1, at += 1) here.bus.publish('count', { at, bytes });
    await assert.rejects(here.bus.request('is it there', 0, { timeoutMs: 200 }), {
      code: 'BUS_NO_HANDLERS',
    });
  });
  assert.equal(told.lost.length, 0); // it is not notified yet
  proxy.release();
  await eventually(() => assert.equal(told.back, 1));
  assert.equal(told.lost.length, 1);
  const firstAfter = at;
  await eventually(async () => {
    here.bus.publish('count', { at, bytes: undefined });
    at += 1;
    await here.bus.drained();
    assert.ok(Number(got.at(-1)) >= firstAfter, `${got.at(-1)} of ${firstAfter}`);
  });
  assert.deepEqual(
    got,
    [...new Set(got)].sort((a, b) => a - b),
  );
  assert.ok(got.length < at); // the server's buffer for it is lost
  await eventually(() => assert.deepEqual(here.cluster.nodes, [there.cluster.node]));
});

for (const options of [{ secret }, {}]) {
  const name = `late messages of a lost connection do not arrive after newer ones`;
  test(`${name}, ${'secret' in options ? 'with' : 'without'} a secret`, { skip }, async (t) => {
    const server = await startServer(t);
    const proxy = await startProxy(t, server);
    const nats = { servers: proxy.url, pingInterval: 300 };
    const [here, there] = [
      await joinBus(t, server, { ...options, nats }),
      await joinBus(t, server, options),
    ];
    const told = connections(t);
    const why = refusals(t);
    const got: unknown[] = [];
    there.bus.consumer('count', ({ body }) => void got.push(body));
    await there.bus.drained();
    for (const sent of upTo(10)) here.bus.send('count', sent);
    await eventually(() => assert.deepEqual(got, upTo(10)));

    proxy.hold();
    for (const sent of upTo(20, 10)) here.bus.send('count', sent);
    await eventually(() => assert.equal(told.back, 1));
    for (const sent of upTo(30, 20)) here.bus.send('count', sent);
    await eventually(() => assert.deepEqual(got, [...upTo(10), ...upTo(30, 20)]));
    proxy.release();
    await eventually(() => assert.equal(why.length, 10));
    assert.match(why.join(), /late/);
    assert.deepEqual(got, [...upTo(10), ...upTo(30, 20)]);
    assert.equal(told.lost.length, 1);
    assert.ok(Number(told.lost[0]) >= 10);
  });
}
