// Consumers without a handler, whose messages are iterated, and the end of a consumer.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type Consumer, EventBus, Scope } from '../../src/bus/index.js';
import { waitFor } from '../support/index.js';

function openBus(t: TestContext): EventBus {
  const bus = new EventBus({ copy: structuredClone });
  t.after(() => bus.close());
  return bus;
}

/** Collects the bodies of all messages until the iteration ends. */
async function bodiesOf(consumer: Consumer): Promise<unknown[]> {
  const bodies: unknown[] = [];
  for await (const { body } of consumer) bodies.push(body);
  return bodies;
}

test('a consumer without a handler is iterated, one message for each turn', async (t) => {
  const bus = openBus(t);
  const numbers = bus.address<number, number>('double');
  const consumer = numbers.consumer({ maxBuffered: 2 });
  const asked = [1, 2, 3].map((body) => numbers.request(body));
  await assert.rejects(asked[2] ?? assert.fail(), { code: 'BUS_FULL' });
  assert.deepEqual([consumer.buffered, consumer.dropped], [2, 1]);
  const turns: number[] = [];
  for await (const message of consumer) {
    turns.push(consumer.buffered);
    message.reply(2 * message.body);
    if (message.body === 2) void numbers.request(4).then(({ body }) => turns.push(body));
    if (message.body === 4) break;
  }
  const replies = await Promise.all(asked.slice(0, 2));
  assert.deepEqual(
    replies.map(({ body }) => body),
    [2, 4],
  );
  await waitFor(() => turns.length === 4);
  assert.deepEqual(turns, [1, 0, 0, 8]);
  assert.ok(consumer.isClosed);
  await assert.rejects(numbers.request(5), { code: 'BUS_NO_HANDLERS' });
});

test('a message that an interceptor stops takes no turn', async (t) => {
  const bus = openBus(t);
  bus.intercept({ inbound: ({ body }) => body !== 'stop' && undefined });
  const consumer = bus.consumer('here');
  const bodies = bodiesOf(consumer);
  for (const body of [1, 'stop', 2]) bus.send('here', body);
  await waitFor(() => bus.stats.received === 3);
  bus.send('here', 3);
  await waitFor(() => bus.stats.received === 4);
  consumer.close();
  assert.deepEqual(await bodies, [1, 2, 3]);
});

test('several calls of next() wait in their order, and messages that wait go to other consumers', async (t) => {
  const bus = openBus(t);
  const consumer = bus.consumer('here', {});
  const iterator = consumer[Symbol.asyncIterator]();
  const [first, second] = [iterator.next(), iterator.next()];
  for (const body of [1, 2, 3]) bus.send('here', body);
  assert.equal((await second).value.body, 2);
  assert.equal((await first).value.body, 1);
  await waitFor(() => consumer.buffered === 1);
  const rest: unknown[] = [];
  bus.consumer('here', ({ body }) => void rest.push(body));
  await iterator.return?.();
  assert.deepEqual(await iterator.next(), { done: true, value: undefined });
  await waitFor(() => rest.length === 1);
  assert.deepEqual(rest, [3]);
});

test('closed resolves, and an iteration ends, however a consumer ends', async (t) => {
  const ends: Readonly<
    Record<string, (bus: EventBus, scope: Scope, consumer: Consumer) => unknown>
  > = {
    owner: (_bus, _scope, consumer) => consumer.close(),
    unit: (_bus, scope) => scope.end(),
    bus: (bus) => bus.close(),
  };
  for (const [by, end] of Object.entries(ends)) {
    const bus = openBus(t);
    const scope = new Scope(bus);
    const consumer = scope.bus.consumer('here');
    const handled = scope.bus.consumer('there', () => {});
    const bodies = bodiesOf(consumer);
    bus.send('here', by);
    await waitFor(() => bus.stats.received === 1);
    await end(bus, scope, consumer);
    await consumer.closed;
    handled.close();
    await handled.closed;
    assert.deepEqual(await bodies, [by]);
  }
});

test('the end of a unit waits for the turn that runs', async (t) => {
  const bus = openBus(t);
  const scope = new Scope(bus);
  const consumer = scope.bus.consumer('here');
  let isDone = false;
  let finish = (): void => assert.fail('no message has come');
  const loop = (async () => {
    for await (const _ of consumer) {
      await new Promise<void>((resolve) => {
        finish = resolve;
      });
      isDone = true;
    }
  })();
  bus.send('here', 1);
  await waitFor(() => bus.stats.received === 1);
  const ended = scope.end().then(() => isDone);
  await consumer.closed;
  finish();
  assert.equal(await ended, true);
  await loop;
});

test('an iterated consumer takes no pace, one with a handler no iteration, and wrong arguments nothing', (t) => {
  const bus = openBus(t);
  const code = 'OPTION_INVALID';
  const iterated = bus.consumer('here');
  const message = /^the consumer of here has no handler: /;
  for (const call of [() => iterated.pause(), () => iterated.resume(), () => iterated.fetch(1)]) {
    assert.throws(call, { code, message });
  }
  const handled = bus.consumer('here', () => {});
  assert.throws(() => handled[Symbol.asyncIterator](), {
    code,
    message: 'the consumer of here has a handler: leave that out to iterate over its messages',
  });
  const register = (...args: unknown[]) => Reflect.apply(bus.consumer, bus, ['here', ...args]);
  const typed = bus.address('here');
  for (const args of [[7], ['x'], [{}, {}], [undefined, {}], [null, {}]]) {
    const wrong = { code, message: /^handler is / };
    assert.throws(() => register(...args), wrong);
    assert.throws(() => Reflect.apply(typed.consumer, typed, args), wrong);
  }
  for (const args of [[null], [[]], [{ maxBuffer: 1 }], [{ maxBuffered: 0 }]]) {
    assert.throws(() => register(...args), { code });
  }
});
