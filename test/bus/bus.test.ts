// The bus of one loop: receivers, order, and the ends of requests.

import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { type TestContext, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { type BusMessage, EventBus } from '../../src/bus/index.js';
import { hasCode } from '../../src/errors.js';
import { atomically } from '../../src/stm/index.js';
import { waitFor } from '../support/index.js';

/** Ends with the test. */
function openBus(t: TestContext): EventBus {
  const bus = new EventBus({ copy: structuredClone });
  t.after(() => bus.close());
  return bus;
}

/** Collects the bodies of messages to `address`. */
function bodiesOf(bus: EventBus, address: string): unknown[] {
  const bodies: unknown[] = [];
  bus.consumer(address, ({ body }) => void bodies.push(body));
  return bodies;
}

test('a publication reaches all consumers, a sent message one after the other', async (t) => {
  const bus = openBus(t);
  const [first, second] = [bodiesOf(bus, 'news'), bodiesOf(bus, 'news')];
  bus.publish('news', 'all');
  for (let sent = 1; sent <= 4; sent += 1) bus.send('news', sent);
  assert.deepEqual(first, []); // no consumer is called inside `send`
  await turn();
  assert.deepEqual(
    [first, second],
    [
      ['all', 1, 3],
      ['all', 2, 4],
    ],
  );
  assert.deepEqual(bus.stats, { sent: 5, received: 6, undelivered: 0, dropped: 0, failed: 0 });
});

test('messages keep their order, whatever is sent and however its consumer pauses', async (t) => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.constantFrom('send', 'publish', 'pause', 'fetch', 'resume', 'turn'), {
        maxLength: 60,
      }),
      async (steps) => {
        const bus = openBus(t);
        const got: unknown[] = [];
        const consumer = bus.consumer('here', ({ body }) => void got.push(body));
        let sent = 0;
        for (const step of steps) {
          if (step === 'send' || step === 'publish') {
            bus[step]('here', sent);
            sent += 1;
          } else if (step === 'turn') await turn();
          else if (step === 'fetch') consumer.fetch(2);
          else consumer[step]();
        }
        await turn();
        consumer.resume();
        assert.deepEqual(
          got,
          Array.from({ length: sent }, (_, index) => index),
        );
        bus.close();
      },
    ),
  );
});

test('a consumer gets a copy, with the headers of its sender', async (t) => {
  const bus = openBus(t);
  const seen: BusMessage[] = [];
  for (let count = 0; count < 2; count += 1) bus.consumer('here', (message) => seen.push(message));
  const body = { list: [1] };
  const headers = { from: 'me' };
  bus.publish('here', body, { headers });
  body.list.push(2);
  await turn();
  assert.deepEqual(
    seen.map((each) => each.body),
    [{ list: [1] }, { list: [1] }],
  );
  assert.notEqual(seen[0]?.body, seen[1]?.body);
  headers.from = 'you';
  for (const each of seen) assert.deepEqual(each.headers, { from: 'me' });
  assert.throws(() => bus.send('here', () => {}), { name: 'DataCloneError' });
  await assert.rejects(
    bus.request('here', () => {}),
    { name: 'DataCloneError' },
  );
});

test('a request has the answer, and the answer to the answer', async (t) => {
  const bus = openBus(t);
  bus.consumer<number>('double', async (message) => {
    const more = await message.replyAndRequest(2 * message.body, { headers: { more: 'yes' } });
    more.reply(`${more.body}!`);
  });
  const answer = await bus.request<number>('double', 21);
  assert.deepEqual([answer.body, answer.headers, answer.isAwaited], [42, { more: 'yes' }, true]);
  const last = await answer.replyAndRequest('thanks');
  assert.deepEqual([last.body, last.isAwaited], ['thanks!', false]);
});

test('an address has types of its own, and answers what its handler returns', async (t) => {
  const bus = openBus(t);
  const length = bus.address<string, number>('length');
  length.answer((text) => text.length);
  assert.equal((await length.request('four')).body, 4);
  const failing = bus.address<string, number>('failing');
  failing.answer((text) => Promise.reject(new Error(`${text} is too much`)));
  await assert.rejects(failing.request('four'), {
    code: 'BUS_HANDLER_ERROR',
    message: /four is too/,
  });
  const seen: string[] = [];
  const news = bus.address<string>('news');
  const consumer = news.consumer(({ body }) => void seen.push(body));
  news.send('first');
  news.publish('second');
  await turn();
  assert.deepEqual(seen, ['first', 'second']);
  consumer.close();
  assert.throws(() => bus.address(''), { code: 'OPTION_INVALID' });
});

test('a request to an address without consumers fails at once', async (t) => {
  const bus = openBus(t);
  await assert.rejects(bus.request('nobody', 1), { code: 'BUS_NO_HANDLERS' });
  bus.send('nobody', 1);
  bus.publish('nobody', 1);
  await waitFor(() => bus.stats.undelivered === 3);
});

test('a consumer may fail, throw, reject, answer twice, or never', async (t) => {
  const bus = openBus(t);
  bus.consumer('fails', (message) => message.fail(404, 'no such thing'));
  await assert.rejects(bus.request('fails', 1), {
    code: 'BUS_FAILED',
    failureCode: 404,
    message: /no such thing/,
  });
  bus.consumer('throws', () => {
    throw new Error('out of order');
  });
  bus.consumer('rejects', () => Promise.reject(new Error('out of order')));
  for (const address of ['throws', 'rejects']) {
    await assert.rejects(bus.request(address, 1), {
      code: 'BUS_HANDLER_ERROR',
      message: new RegExp(`the consumer of ${address} threw: out of order`),
    });
  }
  const twice: unknown[] = [];
  bus.consumer('twice', (message) => {
    message.reply(1);
    assert.throws(
      () => message.reply(2),
      (error) => twice.push(Object(error).code) > 0,
    );
    assert.throws(() => message.fail(1, 'no'), { code: 'BUS_REPLIED' });
  });
  assert.equal((await bus.request('twice', 1)).body, 1);
  assert.deepEqual(twice, ['BUS_REPLIED']);
  bus.consumer('never', () => {});
  await assert.rejects(bus.request('never', 1, { timeoutMs: 20 }), { code: 'BUS_TIMEOUT' });
});

test('an answer that cannot travel is thrown where it is given, and another may follow', async (t) => {
  const bus = openBus(t);
  bus.consumer('here', (message) => {
    assert.throws(() => message.reply(() => {}), { name: 'DataCloneError' });
    message.reply('plain');
  });
  assert.equal((await bus.request('here', 1)).body, 'plain');
});

test('a request that is aborted or late drops its answer, and answers no answer', async (t) => {
  const bus = openBus(t);
  const held: BusMessage[] = [];
  bus.consumer('slow', (message) => void held.push(message));
  const abort = new AbortController();
  const ends = [
    assert.rejects(bus.request('slow', 1, { signal: abort.signal }), { code: 'ABORTED' }),
    assert.rejects(bus.request('slow', 2, { timeoutMs: 10 }), { code: 'BUS_TIMEOUT' }),
  ];
  await waitFor(() => held.length === 2);
  abort.abort(new Error('not wanted'));
  await Promise.all(ends);
  const [first, second] = held;
  first?.reply('too late');
  await assert.rejects(second?.replyAndRequest('too late') ?? Promise.resolve(), {
    code: 'BUS_NO_HANDLERS',
  });
  await assert.rejects(bus.request('slow', 3, { signal: abort.signal }), { code: 'ABORTED' });
});

test('a reply to a message that is no request does nothing', async (t) => {
  const bus = openBus(t);
  const messages: BusMessage[] = [];
  bus.consumer('here', (message) => void messages.push(message));
  bus.send('here', 1);
  await waitFor(() => messages.length === 1);
  assert.equal(messages[0]?.isAwaited, false);
  messages[0]?.reply('received by none');
  bus.send('here', 2);
  await waitFor(() => messages.length === 2);
  await assert.rejects(messages[1]?.replyAndRequest(1) ?? Promise.resolve(), {
    code: 'BUS_NO_HANDLERS',
  });
});

test('a paused consumer holds so many, refuses more, and goes on in order', async (t) => {
  const bus = openBus(t);
  const got: unknown[] = [];
  const consumer = bus.consumer('here', ({ body }) => void got.push(body), { maxBuffered: 3 });
  consumer.pause();
  for (let sent = 0; sent < 4; sent += 1) bus.send('here', sent);
  await assert.rejects(bus.request('here', 4), { code: 'BUS_FULL' });
  assert.deepEqual([consumer.buffered, consumer.dropped, bus.stats.dropped], [3, 2, 2]);
  consumer.fetch(2);
  assert.deepEqual(got, [0, 1]);
  consumer.resume();
  assert.deepEqual(got, [0, 1, 2]);
});

test('a consumer that asks for the next message in its handler gets as many as there are', async (t) => {
  const bus = openBus(t);
  const sent = 20_000;
  let [received, depth, deepest] = [0, 0, 0];
  const consumer = bus.consumer(
    'here',
    () => {
      depth += 1;
      deepest = Math.max(deepest, depth);
      received += 1;
      consumer.fetch(1);
      depth -= 1;
    },
    { maxBuffered: sent },
  );
  consumer.pause();
  for (let each = 0; each < sent; each += 1) bus.send('here', each);
  await waitFor(() => consumer.buffered === sent);
  consumer.fetch(1);
  assert.deepEqual([received, deepest], [sent, 1]);
});

test('a consumer that another one closes meanwhile gets nothing', async (t) => {
  const bus = openBus(t);
  const got: string[] = [];
  bus.consumer('here', () => {
    got.push('first');
    second.close();
  });
  const second = bus.consumer('here', () => got.push('second'));
  bus.publish('here', 1);
  await turn();
  assert.deepEqual(got, ['first']);
});

test('more messages than a turn may have are refused', async (t) => {
  const bus = openBus(t);
  const bodies = bodiesOf(bus, 'here');
  const fill = (): void => {
    for (let sent = 0; sent <= 100_000; sent += 1) bus.send('here', sent);
  };
  assert.throws(fill, { code: 'BUS_FULL' });
  await turn();
  assert.equal(bodies.length, 100_000);
});

test('messages that wait at a closed consumer go to another, or are refused', async (t) => {
  const bus = openBus(t);
  const closes = bus.consumer('here', () => {}).pause();
  const request = bus.request('here', 1);
  await waitFor(() => closes.buffered === 1);
  const answers = bus.consumer('here', (message) => message.reply('the other'));
  closes.close();
  assert.equal((await request).body, 'the other');
  answers.pause();
  const refused = bus.request('here', 2);
  await waitFor(() => answers.buffered === 1);
  answers.close();
  answers.close();
  await assert.rejects(refused, { code: 'BUS_NO_HANDLERS' });
});

test('a publication that waits at a closed consumer goes to no other', async (t) => {
  const bus = openBus(t);
  const bodies: unknown[] = [];
  bus.consumer('news', ({ body }) => bodies.push(body));
  const closes = bus.consumer('news', () => {}).pause();
  bus.publish('news', 'first');
  await waitFor(() => closes.buffered === 1);
  closes.close();
  bus.publish('news', 'last');
  await waitFor(() => bodies.includes('last'));
  assert.deepEqual(bodies, ['first', 'last']);
});

test('a closed bus rejects waiting and new requests with BUS_CLOSED', async (t) => {
  const bus = openBus(t);
  const consumer = bus.consumer('here', () => {});
  const waits = bus.request('here', 1);
  const got: unknown[] = [];
  const paused = bus.consumer('paused', () => {}).pause();
  bus.send('paused', 1);
  await waitFor(() => paused.buffered === 1);
  bus.consumer('paused', ({ body }) => void got.push(body));
  bus.consumer('asks', async (message) => {
    await message.replyAndRequest(1).catch(() => {});
  });
  const answer = await bus.request('asks', 1);
  bus.close();
  bus.close();
  await assert.rejects(waits, { code: 'BUS_CLOSED' });
  assert.ok(consumer.isClosed && paused.isClosed);
  assert.deepEqual(got, []);
  await assert.rejects(answer.replyAndRequest(1), { code: 'BUS_CLOSED' });
  assert.throws(() => bus.send('here', 1), { code: 'BUS_CLOSED' });
  await assert.rejects(bus.request('here', 1), { code: 'BUS_CLOSED' });
});

test('invalid arguments are refused', async (t) => {
  const bus = openBus(t);
  assert.throws(() => bus.send('', 1), { code: 'OPTION_INVALID' });
  assert.throws(() => Reflect.apply(bus.consumer, bus, ['here', 7]), { code: 'OPTION_INVALID' });
  assert.throws(() => bus.send('here', 1, { headers: Object({ a: 1 }) }), {
    code: 'OPTION_INVALID',
  });
  assert.throws(() => bus.consumer('here', () => {}, { maxBuffered: 0 }), {
    code: 'OPTION_INVALID',
  });
  assert.throws(() => bus.send('here', 1, { local: Object('both') }), { code: 'OPTION_INVALID' });
  const consumer = bus.consumer('here', (message) => message.fail(Number.NaN, ''));
  assert.throws(() => consumer.fetch(0), { code: 'OPTION_INVALID' });
  await assert.rejects(bus.request('here', 1, { timeoutMs: 0 }), { code: 'OPTION_INVALID' });
  await assert.rejects(bus.request('here', 1), { code: 'BUS_HANDLER_ERROR' });
});

test('a transaction sends no message', async (t) => {
  const bus = openBus(t);
  const isRefused = (error: unknown) => hasCode(error, 'STM_SIDE_EFFECT');
  assert.throws(() => atomically(() => bus.publish('lamp', 1)), isRefused);
  assert.throws(() => atomically(() => bus.send('lamp', 1)), isRefused);
  let request: Promise<unknown> | undefined;
  atomically(() => {
    request = bus.request('lamp', 1);
  });
  await assert.rejects(request ?? Promise.resolve(), isRefused);
});

test('handlers run outside of the context of the sender, as on another loop', async (t) => {
  const bus = openBus(t);
  const context = new AsyncLocalStorage<string>();
  const seen: (string | undefined)[] = [];
  bus.consumer('ask', async (message) => {
    seen.push(context.getStore());
    message.reply(context.run('handler', () => message.body));
  });
  await context.run('sender', async () => {
    bus.send('ask', 1);
    bus.publish('ask', 2);
    await bus.request('ask', 3);
    assert.equal(context.getStore(), 'sender'); // a reply keeps the context of its requester
  });
  assert.deepEqual(seen, [undefined, undefined, undefined]);
});
