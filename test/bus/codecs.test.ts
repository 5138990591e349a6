// Additions of a program to a bus: codecs for its bodies, and interceptors that see every message.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { type BusCodec, EventBus, Scope } from '../../src/bus/index.js';
import { announcements } from '../../src/lib/index.js';
import { waitFor } from '../support/index.js';

/** Ends with the test. */
function openBus(t: TestContext): EventBus {
  const bus = new EventBus({ copy: structuredClone });
  t.after(() => bus.close());
  return bus;
}

/** Keeps private state, which no other way of copying keeps. */
class Money {
  readonly #cents: number;
  constructor(cents: number) {
    this.#cents = cents;
  }
  get cents(): number {
    return this.#cents;
  }
}

const money: BusCodec<Money, number> = {
  name: 'money',
  type: Money,
  encode: ({ cents }) => cents,
  decode: (cents) => new Money(cents),
};

test('bodies of a class travel by its codec, there and back', async (t) => {
  const bus = openBus(t);
  bus.addCodec(money);
  bus.consumer<Money>('double', (message) => {
    assert.deepEqual(message.headers, { to: 'whom' }); // the codec's header is not visible
    message.reply(new Money(message.body.cents * 2));
  });
  const answer = await bus.request<Money>('double', new Money(21), { headers: { to: 'whom' } });
  assert.ok(answer.body instanceof Money);
  assert.equal(answer.body.cents, 42);
  assert.deepEqual(answer.headers, {});
});

test('a codec that is named is used for whatever is sent, and for answers to answers', async (t) => {
  const bus = openBus(t);
  bus.addCodec({
    name: 'hex',
    encode: (n: number) => n.toString(16),
    decode: (text) => Number.parseInt(text, 16) + 1,
  });
  bus.consumer('ask', async (message) => {
    const next = await message.replyAndRequest(message.body, { codec: 'hex' });
    next.reply(next.body);
  });
  const first = await bus.request('ask', 15, { codec: 'hex' });
  assert.equal(first.body, 17); // through the codec twice
  assert.equal((await first.replyAndRequest(1, { codec: 'hex' })).body, 2);
});

test('a publication by a codec reaches all consumers', async (t) => {
  const bus = openBus(t);
  bus.addCodec(money);
  const got: number[] = [];
  for (let at = 0; at < 2; at += 1) {
    bus.consumer<Money>('all', ({ body }) => void got.push(body.cents));
  }
  bus.publish('all', new Money(7));
  await turn();
  assert.deepEqual(got, [7, 7]);
});

test('a codec that is missing, or throws, is named to the requester', async (t) => {
  const bus = openBus(t);
  const sick = { name: 'sick', encode: (body: unknown) => body, decode: () => assert.fail('ill') };
  const wrong = { code: 'BUS_CODEC_FAILED', message: /codec nothing/ };
  assert.throws(() => bus.send('any', 1, { codec: 'nothing' }), wrong);
  assert.throws(() => bus.publish('any', 1, { codec: 'nothing' }), wrong);
  await assert.rejects(bus.request('any', 1, { codec: 'nothing' }), wrong);
  const added = bus.addCodec(sick);
  bus.consumer('any', (message) => message.reply(1));
  await assert.rejects(bus.request('any', 1, { codec: 'sick' }), {
    code: 'BUS_CODEC_FAILED',
    message: 'the codec sick cannot decode a body: ill',
  });
  const dropped: unknown[] = [];
  const note = (message: unknown): void => void dropped.push(message);
  announcements.busDropped.subscribe(note);
  t.after(() => announcements.busDropped.unsubscribe(note));
  bus.send('any', 1, { codec: 'sick' }); // announced, and the program goes on
  await turn();
  assert.deepEqual(dropped, [{ address: 'any', why: 'the codec sick cannot decode a body: ill' }]);
  assert.equal(bus.stats.dropped, 1);
  added.close();
  assert.throws(() => bus.send('any', 1, { codec: 'sick' }), { code: 'BUS_CODEC_FAILED' });
});

/** Classes of the language and of Node that messages of others consist of. */
const systemClasses = [
  Object,
  Array,
  Map,
  Set,
  Date,
  Error,
  Promise,
  String,
  Number,
  Uint8Array,
  Buffer,
];

for (const type of systemClasses) {
  test(`a codec for every ${type.name} is refused`, (t) => {
    const bus = openBus(t);
    const codec = {
      name: 'all',
      type,
      encode: (body: unknown) => body,
      decode: (body: unknown) => body,
    };
    assert.throws(() => bus.addCodec(Object(codec)), {
      code: 'OPTION_INVALID',
      message:
        /codec\.type .* a class of the program; name the codec of such bodies by the option codec/,
    });
  });
}

test("bodies at manycore's own addresses pass no codec", async (t) => {
  class Own {}
  const bus = openBus(t);
  const own = { name: 'own', type: Own, encode: () => 'encoded', decode: () => new Own() };
  const added = bus.addCodec(own);
  bus.consumer('manycore:own', (message) => {
    assert.ok(message.body instanceof Own || typeof message.body === 'object');
    message.reply(new Own());
  });
  const headers = { kind: 'own' };
  const { body } = await bus.request('manycore:own', new Own(), { headers });
  assert.notEqual(body, 'encoded');
  added.close();
  bus.addCodec({
    name: 'fails',
    type: Own,
    encode: () => {
      throw new Error('used');
    },
    decode: String,
  });
  assert.ok(await bus.request('manycore:own', new Own()));
});

const adder = (by: number): BusCodec<number, number> => ({
  name: 'add',
  encode: (n) => n,
  decode: (n) => n + by,
});

test('a second codec of a name or class is refused until the first is closed', async (t) => {
  const bus = openBus(t);
  bus.consumer('add', (message) => message.reply(message.body));
  const first = bus.addCodec(adder(1));
  const taken = { code: 'OPTION_INVALID', message: /codec\.name is .* another codec of this name/ };
  assert.throws(() => bus.addCodec(adder(10)), taken);
  const unit = new Scope(bus, { unit: 'other' });
  assert.throws(() => unit.bus.addCodec(adder(10)), taken);
  assert.equal((await bus.request('add', 0, { codec: 'add' })).body, 1);
  first.close();
  unit.bus.addCodec(adder(10));
  assert.equal((await bus.request('add', 0, { codec: 'add' })).body, 10);
  bus.addCodec(money);
  bus.addCodec({ ...money }); // the same once more, as by another unit
  const sameClass = { code: 'OPTION_INVALID', message: /another codec for its class, money/ };
  assert.throws(() => bus.addCodec({ ...money, name: 'coins' }), sameClass);
});

test('of the codecs of one unit the last counts; when it goes the one before does', async (t) => {
  const bus = openBus(t);
  const [old, young] = [new Scope(bus, { unit: 'adds' }), new Scope(bus, { unit: 'adds' })];
  bus.consumer('add', (message) => message.reply(message.body));
  old.bus.addCodec(adder(1));
  const second = young.bus.addCodec(adder(10));
  assert.equal((await bus.request('add', 0, { codec: 'add' })).body, 10);
  second.close();
  second.close(); // once more changes nothing
  assert.equal((await bus.request('add', 0, { codec: 'add' })).body, 1);
});

test('interceptors see and change sent and received messages', async (t) => {
  const bus = openBus(t);
  const seen: string[] = [];
  bus.intercept({
    outbound: ({ address, headers, isAwaited }) => {
      seen.push(`out ${address} ${isAwaited}`);
      return { headers: { ...headers, trace: '7' } };
    },
    inbound: ({ body, headers }) => {
      seen.push(`in ${headers['trace']}`);
      return { body: `${body}!` };
    },
  });
  const second = bus.intercept({ outbound: () => void seen.push('second') });
  bus.consumer('echo', (message) => message.reply([message.body, message.headers]));
  assert.deepEqual((await bus.request('echo', 'hi', { headers: { a: 'b' } })).body, [
    'hi!',
    { a: 'b', trace: '7' },
  ]);
  assert.deepEqual(seen, ['out echo true', 'second', 'in 7']);
  second.close();
  bus.send('echo', 1);
  await turn();
  assert.deepEqual(seen.slice(3), ['out echo false', 'in 7']);
});

test('a header of several values keeps them where an interceptor leaves its text', async (t) => {
  const bus = openBus(t);
  bus.intercept({
    outbound: ({ headers, headersDistinct }) => {
      assert.deepEqual(headersDistinct, { both: ['a', 'b'], other: ['c', 'd'] });
      return { headers: { ...headers, other: 'e', more: ['f', 'g'] } };
    },
  });
  bus.consumer('echo', (message) => message.reply(message.headersDistinct));
  const headers = { both: ['a', 'b'], other: ['c', 'd'] };
  const { body } = await bus.request('echo', 1, { headers });
  assert.deepEqual(body, { both: ['a', 'b'], other: ['e'], more: ['f', 'g'] });
});

test('interceptors of replies see and change what a handler replies', async (t) => {
  const bus = openBus(t);
  const seen: unknown[] = [];
  bus.intercept({
    outboundReply: ({ address, body, headers, isAwaited, isPublished }) => {
      seen.push(['out', address, body, isAwaited, isPublished]);
      return { body: `${body} out`, headers: { ...headers, out: 'yes' } };
    },
    inboundReply: ({ body, headers }) => {
      seen.push(['in', body, headers]);
      return { body: `${body} in` };
    },
  });
  bus.consumer('ask', async (message) => {
    message.reply((await message.replyAndRequest('first')).body);
  });
  bus.consumer('fails', (message) => message.fail(1, 'bad'));
  bus.consumer('silent', (message) => message.reply('nobody waits'));
  const first = await bus.request('ask', 1);
  assert.deepEqual([first.body, first.headers], ['first out in', { out: 'yes' }]);
  first.reply('second');
  await assert.rejects(bus.request('fails', 1), { code: 'BUS_FAILED' });
  bus.send('silent', 1);
  await waitFor(() => bus.stats.received === 3);
  assert.deepEqual(seen, [
    ['out', 'ask', 'first', true, false],
    ['in', 'first out', { out: 'yes' }],
    ['out', 'ask', 'second', false, false],
    ['in', 'second out', { out: 'yes' }],
  ]);
});

test('an interceptor that answers false, or throws, stops a reply', async (t) => {
  const bus = openBus(t);
  bus.consumer('door', (message) => message.reply('open'));
  const ends: Promise<unknown>[] = [];
  bus.consumer('ask', (message) => {
    ends.push(message.replyAndRequest('more?').catch((error: unknown) => Object(error).code));
  });
  for (const direction of ['outboundReply', 'inboundReply'] as const) {
    using _ = bus.intercept({ [direction]: () => false });
    const message = 'an interceptor has stopped the reply of door';
    await assert.rejects(bus.request('door', 1), { code: 'BUS_INTERCEPTED', message });
    await assert.rejects(bus.request('ask', 1), { code: 'BUS_INTERCEPTED' });
  }
  assert.deepEqual(await Promise.all(ends), ['BUS_INTERCEPTED', 'BUS_INTERCEPTED']);
  for (const [direction, code] of [
    ['outboundReply', 'BUS_HANDLER_ERROR'],
    ['inboundReply', 'ERR_ASSERTION'],
  ]) {
    using _ = bus.intercept({ [`${direction}`]: () => assert.fail('no way') });
    await assert.rejects(bus.request('door', 1), { code, message: /no way/ });
  }
  assert.equal((await bus.request('door', 1)).body, 'open');
});

test('an interceptor that answers false stops a message', async (t) => {
  const bus = openBus(t);
  let handled = 0;
  bus.consumer('door', () => {
    handled += 1;
  });
  for (const direction of ['outbound', 'inbound'] as const) {
    using _ = bus.intercept({ [direction]: () => false });
    await assert.rejects(bus.request('door', 1), { code: 'BUS_INTERCEPTED' });
    bus.send('door', 1);
    bus.publish('door', 1);
    await turn();
  }
  assert.equal(handled, 0);
  bus.send('door', 1);
  await turn();
  assert.equal(handled, 1);
  assert.equal(bus.stats.dropped, 6);
});

test('an exception of an interceptor is thrown to the sender, or is the reply', async (t) => {
  const bus = openBus(t);
  bus.consumer('door', (message) => message.reply('open'));
  {
    using _ = bus.intercept({ outbound: () => assert.fail('no way') });
    assert.throws(() => bus.send('door', 1), /no way/);
    await assert.rejects(bus.request('door', 1), /no way/);
  }
  using _ = bus.intercept({ inbound: () => assert.fail('no way') });
  await assert.rejects(bus.request('door', 1), { code: 'BUS_HANDLER_ERROR', message: /no way/ });
});

test('streams are opened through interceptors, and their items pass them by', async (t) => {
  const bus = openBus(t);
  const seen: string[] = [];
  bus.intercept({ outbound: ({ address }) => void seen.push(address) });
  bus.acceptStreams('lines', (stream) => void stream.pipe(stream));
  const stream = await bus.openStream('lines');
  stream.end('one');
  const items: unknown[] = [];
  for await (const item of stream) items.push(item);
  assert.deepEqual([items, seen], [['one'], ['lines']]);
});

test('interceptors and codecs of a unit end with it', async (t) => {
  const bus = openBus(t);
  const scope = new Scope(bus);
  let count = 0;
  scope.bus.intercept({
    outbound: () => {
      count += 1;
    },
  });
  scope.bus.addCodec(money);
  bus.consumer('any', () => {});
  bus.send('any', 1, { codec: 'money' });
  await scope.end();
  assert.throws(() => bus.send('any', 1, { codec: 'money' }), { code: 'BUS_CODEC_FAILED' });
  bus.send('any', 1);
  assert.equal(count, 1);
});

test('wrong codecs and interceptors are refused', (t) => {
  const bus = openBus(t);
  const invalid = { code: 'OPTION_INVALID' };
  assert.throws(() => bus.addCodec({ ...money, name: '' }), invalid);
  assert.throws(() => Reflect.apply(bus.addCodec, bus, [{ name: 'half', encode() {} }]), invalid);
  assert.throws(() => Reflect.apply(bus.intercept, bus, [{ outbound: 7 }]), invalid);
  assert.throws(() => Reflect.apply(bus.intercept, bus, [{ outboundReply: 7 }]), invalid);
  assert.throws(() => Reflect.apply(bus.intercept, bus, [{ outward: () => {} }]), invalid);
  assert.throws(() => Reflect.apply(bus.intercept, bus, []), invalid);
  bus.consumer('door', () => assert.fail('it let everybody pass'));
  for (const answer of [Promise.resolve(false), true, null, 7]) {
    using _ = Reflect.apply(bus.intercept, bus, [{ outbound: () => answer }]);
    assert.throws(() => bus.send('door', 1), invalid);
  }
  assert.throws(() => bus.send('door', 1, { headers: { 'manycore-codec': 'money' } }), invalid);
});
