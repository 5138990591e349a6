// Answers about services to tools of NATS (ADR-32), which are clients of the server and no nodes.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createCopy, EventBus } from '../../../src/bus/index.js';
import { fillClusterOptions, joinCluster } from '../../../src/cluster/index.js';
import { waitFor } from '../../support/index.js';
import {
  answersOf,
  joinBus,
  refusals,
  skip,
  startConfigured,
  startServer,
  stranger,
} from '../server.js';

test('PING, INFO and STATS of a service, before the cluster is joined and after it has ended', {
  skip,
}, async (t) => {
  const server = await startServer(t);
  const why = refusals(t);
  const bus = new EventBus({ copy: createCopy() });
  t.after(() => bus.close());
  const micro = { name: 'Shop', version: '1.2.3', description: 'sells', metadata: { floor: '2' } };
  const shop = {
    price: (name: string) => name.length,
    $fails: () => Promise.reject(new Error('sold out')),
  };
  const before = bus.service('shop.lamps', shop, { micro });
  const proxy = bus.proxy<typeof shop>('shop.lamps');
  const secret = 'a secret of the cluster';
  const options = { nats: server.url, secret };
  const cluster = await joinCluster(bus, fillClusterOptions(options));
  t.after(() => cluster.close());
  const tool = await stranger(t, server.url);
  assert.equal(await proxy.price('lamp'), 4);
  await assert.rejects(proxy.$fails(), { code: 'BUS_HANDLER_ERROR' });
  const [ping] = await answersOf(tool, '$SRV.PING');
  const id = String(Reflect.get(Object(ping), 'id'));
  const common = { name: 'Shop', id, version: '1.2.3', metadata: { floor: '2' } };
  assert.match(id, /^[0-9a-f]{22}$/);
  assert.deepEqual(ping, { type: 'io.nats.micro.v1.ping_response', ...common });
  const place = { subject: 'manycore.send.shop.lamps', queue_group: 'consumers' };
  for (const subject of ['$SRV.INFO', '$SRV.INFO.Shop', `$SRV.INFO.Shop.${id}`]) {
    assert.deepEqual(await answersOf(tool, subject), [
      {
        type: 'io.nats.micro.v1.info_response',
        ...common,
        description: 'sells',
        endpoints: [
          { name: 'price', ...place, metadata: {} },
          { name: '_fails', ...place, metadata: {} },
        ],
      },
    ]);
  }
  const [stats] = await answersOf(tool, '$SRV.STATS.Shop');
  const { started, endpoints, ...rest } = Object(stats);
  assert.deepEqual(rest, { type: 'io.nats.micro.v1.stats_response', ...common });
  assert.equal(new Date(started).toISOString(), started);
  const times = ['processing_time', 'average_processing_time'];
  for (const each of endpoints) {
    for (const name of times) {
      assert.ok(Number.isSafeInteger(each[name]) && each[name] >= 0, `${name}: ${each[name]}`);
      delete each[name];
    }
  }
  assert.deepEqual(endpoints, [
    { name: 'price', ...place, num_requests: 1, num_errors: 0, last_error: '' },
    { name: '_fails', ...place, num_requests: 1, num_errors: 1, last_error: 'sold out' },
  ]);

  const after = bus.service('shop.desks', shop, { micro: { ...micro, name: 'Desks' } });
  await bus.drained();
  assert.equal((await answersOf(tool, '$SRV.PING.Desks')).length, 1);
  for (const each of [before, after]) {
    each.close();
    await each.closed;
  }
  await bus.drained();
  assert.deepEqual(await answersOf(tool, '$SRV.PING'), []);
  assert.deepEqual(why, []);
});

test('a service works for a user that may not subscribe to $SRV, and the refusal is announced', {
  skip,
}, async (t) => {
  const permissions = '{ subscribe: { deny: ["$SRV.>"] } }';
  const users = `[{ user: a, password: b, permissions: ${permissions} }]`;
  const server = await startConfigured(t, `authorization: { users: ${users} }`);
  const why = refusals(t);
  const nats = { servers: server.url, user: 'a', pass: 'b' };
  const [{ bus }, other] = [await joinBus(t, server, { nats }), await joinBus(t, server, { nats })];
  const micro = { name: 'shop', version: '1.2.3' };
  bus.service('shop', { one: () => 1 }, { micro });
  await bus.drained();
  assert.equal(await other.bus.proxy<{ one(): number }>('shop').one(), 1);
  bus.service('later', { one: () => 1 }, { micro: { ...micro, name: 'later' } });
  await waitFor(() => why.length > 1);
  const reason = 'is not shown to tools of NATS, and works all the same: Permissions Violation';
  for (const [at, name] of ['shop', 'later'].entries()) {
    assert.ok(why[at]?.startsWith(`the service ${name} ${reason}`), why[at]);
  }
});

test('a description above max_payload is announced, and the service works', { skip }, async (t) => {
  const server = await startServer(t);
  const why = refusals(t);
  const [{ bus }, other] = [await joinBus(t, server), await joinBus(t, server)];
  const micro = { name: 'shop', version: '1.2.3', description: 'x'.repeat(2 ** 21) };
  bus.service('shop', { one: () => 1 }, { micro });
  await bus.drained();
  const tool = await stranger(t, server.url);
  tool.publish('$SRV.INFO.shop', Buffer.alloc(0), { reply: 'answers' });
  await waitFor(() => why.length > 0);
  const reason = 'is not shown to tools of NATS, and works all the same: .*payload';
  assert.match(why[0] ?? '', new RegExp(`^the service shop ${reason}`));
  assert.equal((await answersOf(tool, '$SRV.PING.shop')).length, 1);
  assert.equal(await other.bus.proxy<{ one(): number }>('shop').one(), 1);
});
