// Buses of units, which end with their scope, and the bus of the package, which forwards to that of the
// running code.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import { EventBus, forwardingBus, Scope, type StreamHandler } from '../../src/bus/index.js';
import { waitFor } from '../support/index.js';

function openScope(t: TestContext): { readonly loop: EventBus; readonly scope: Scope } {
  const loop = new EventBus({ copy: structuredClone });
  t.after(() => loop.close());
  return { loop, scope: new Scope(loop) };
}

test("the bus of a scope refuses addresses of manycore's own", async (t) => {
  const { bus } = openScope(t).scope;
  const reserved = {
    code: 'OPTION_INVALID',
    message: `address is "manycore:x": names that begin with "manycore:" are manycore's own`,
  };
  const address = 'manycore:x';
  assert.throws(() => bus.consumer(address, () => {}), reserved);
  assert.throws(() => bus.acceptStreams(address, () => {}), reserved);
  assert.throws(() => bus.send(address, 1), reserved);
  assert.throws(() => bus.publish(address, 1), reserved);
  await assert.rejects(bus.request(address, 1), reserved);
  await assert.rejects(bus.openStream(address), reserved);
  await assert.rejects(bus.address(address).request(1), reserved);
});

test('everything that was opened by the bus of a scope ends with it, after its handlers', async (t) => {
  const { loop, scope } = openScope(t);
  const { bus } = scope;
  let finish = (): void => assert.fail('it has not begun');
  let isDone = false;
  const consumer = bus.consumer('works', async (message) => {
    await new Promise<void>((resolve) => {
      finish = resolve;
    });
    isDone = true;
    message.reply('done');
  });
  const acceptor = bus.acceptStreams('streams', () => {});
  const other = await loop.openStream('streams');
  const own = await bus.openStream('streams');
  const begun: unknown[] = [];
  bus.intercept({ inbound: ({ address }) => void begun.push(address) });
  const reply = loop.request('works', 1);
  await waitFor(() => begun.includes('works'));
  const ended = scope.end();
  assert.ok(consumer.isClosed && acceptor.isClosed);
  assert.equal(own.destroyed, false);
  const lost = once(other, 'error');
  finish();
  await ended;
  assert.ok(isDone && own.destroyed);
  assert.equal((await reply).body, 'done');
  assert.equal((await lost)[0].code, 'BUS_CONSUMER_LOST');
  loop.consumer('later', () => {});
  loop.send('later', 1);
  await loop.drained();
  await waitFor(() => loop.stats.received > 1);
  assert.ok(!begun.includes('later'));
  assert.throws(() => bus.consumer('works', () => {}), { code: 'BUS_CLOSED' });
  assert.throws(() => bus.acceptStreams('works', () => {}), { code: 'BUS_CLOSED' });
  await assert.rejects(loop.request('works', 1), { code: 'BUS_NO_HANDLERS' });
});

test('a forwarding bus calls that of now, also by methods without their object', async (t) => {
  const [first, second] = [openScope(t), openScope(t)];
  let now = first;
  const bus = forwardingBus(() => now.scope.bus);
  assert.ok(Object.isFrozen(bus));
  const { consumer, acceptStreams, address, publish, send, request, openStream } = bus;
  const { intercept, addCodec, drained } = bus;
  const got: unknown[] = [];
  const options = { maxBuffered: 1 };
  consumer('all', ({ body, headers }) => void got.push([body, headers['a']]), options).pause();
  consumer('echo', (message) => message.reply(message.body, { headers: message.headers }));
  const accept: StreamHandler = (stream, headers) => stream.resume().end(headers['a']);
  acceptStreams('streams', accept, { isLocal: true });
  const headers = { a: 'b' };
  const reply = await request('echo', 1, { headers });
  assert.deepEqual([reply.body, reply.headers], [1, headers]);
  assert.equal((await address<number, number>('echo').request(2)).body, 2);
  const items: unknown[] = [];
  for await (const item of (await openStream('streams', { headers })).end()) items.push(item);
  assert.deepEqual(items, ['b']);
  addCodec({ name: 'one', encode: () => 'one', decode: (body) => body });
  const registration = intercept({ outbound: () => false });
  await assert.rejects(request('echo', 1), { code: 'BUS_INTERCEPTED' });
  registration.close();
  now = second;
  assert.equal(bus.stats.sent, 0);
  await assert.rejects(request('echo', 1), { code: 'BUS_NO_HANDLERS' });
  consumer('all', ({ body, headers: { a } }) => void got.push([body, a]));
  assert.equal(send('all', 'sent', { headers }), true);
  assert.equal(publish('all', 'published', { headers }), true);
  await drained();
  await waitFor(() => got.length === 2);
  assert.deepEqual(got, [
    ['sent', 'b'],
    ['published', 'b'],
  ]);
  assert.equal(send.name, 'send');
});
