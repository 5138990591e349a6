// The contract of `Transport` (src/bus/transports/transport.ts) as tests, for any of them. The number in front
// of a title is the promise that it holds.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { BusMessage, EventBus } from '../../src/bus/index.js';
import { hasCode } from '../../src/errors.js';
import { waitFor } from '../support/index.js';
import { refusals, refusedBy } from './refused-streams.js';

/** Two buses that a transport connects; both are the same where it stays in the loop. */
export interface Connected {
  readonly sender: EventBus;
  readonly receiver: EventBus;
  /** Ends the transport; `undefined`: it ends with its bus alone. */
  readonly end?: (() => unknown) | undefined;
}

export interface TransportSubject {
  readonly name: string;
  readonly skip?: string | false;
  /** The code with which a waiting request rejects when the transport ends. */
  readonly lostCode?: string;
  /** Everything ends with the test. */
  readonly open: (t: TestContext) => Connected | Promise<Connected>;
}

let probes = 0;

/** Waits until the sender has all consumers that the receiver has now. */
async function announced({ sender, receiver }: Connected): Promise<void> {
  probes += 1;
  const address = `probe ${probes}`;
  const probe = receiver.consumer(address, (message) => message.reply('here'));
  await waitFor(() => sender.request(address, 'are you there?').catch(() => undefined));
  probe.close();
}

/** Returns the bodies of the messages to `address`. */
async function bodiesOf(connected: Connected, address: string): Promise<unknown[]> {
  const bodies: unknown[] = [];
  connected.receiver.consumer(address, ({ body }) => void bodies.push(body));
  await announced(connected);
  return bodies;
}

const coded = (): Error => Object.assign(new Error('bad'), { code: 'E_X' });

function errorNamed(name: string, rest: object = {}): (cause: unknown) => void {
  return (cause) => {
    assert.ok(cause instanceof Error);
    assert.deepEqual([cause.name, cause.message], [name, 'bad']);
    for (const [key, value] of Object.entries(rest)) assert.equal(Reflect.get(cause, key), value);
  };
}

/** Values that a handler throws, and the check of the cause elsewhere. */
const causes: readonly [name: string, thrown: unknown, expected: (cause: unknown) => void][] = [
  ['an error with a code', coded(), errorNamed('Error', { code: 'E_X' })],
  [
    'an error with a cause',
    new Error('bad', { cause: coded() }),
    (cause) => {
      errorNamed('Error')(cause);
      errorNamed('Error', { code: 'E_X' })(Object(cause).cause);
    },
  ],
  [
    'an aggregate',
    new AggregateError([new RangeError('bad')], 'bad'),
    (cause) => {
      errorNamed('AggregateError')(cause);
      errorNamed('RangeError')(Object(cause).errors[0]);
    },
  ],
  ['a text', 'bad', (cause) => assert.equal(cause, 'bad')],
  ['an object', { status: 404 }, (cause) => assert.deepEqual(cause, { status: 404 })],
  ['nothing', undefined, (cause) => assert.equal(cause, undefined)],
  // It stays where it is, and the failure goes without it.
  ['what cannot travel', Object.assign(new Error('bad'), { held: new WeakMap() }), () => {}],
];

export function testTransport({ name, skip = false, lostCode, open }: TransportSubject): void {
  const check = (title: string, body: (connected: Connected) => Promise<void>): void => {
    test(`${name}: ${title}`, { skip }, async (t) => body(await open(t)));
  };

  check('1: messages arrive in the order of deliver()', async (connected) => {
    const bodies = await bodiesOf(connected, 'ordered');
    const { sender } = connected;
    const large = 'x'.repeat(20_000);
    const sent = Array.from({ length: 500 }, (_, at) => (at % 100 === 7 ? large : at));
    for (const body of sent) if (!sender.send('ordered', body)) await sender.drained();
    for (const body of sent) if (!sender.publish('ordered', body)) await sender.drained();
    await waitFor(() => bodies.length === 1000);
    assert.deepEqual(bodies, [...sent, ...sent]);
  });

  check('2: the body was read when deliver() returns, and each consumer has its own', async (c) => {
    const seen = await bodiesOf(c, 'copied');
    const more: unknown[] = [];
    c.receiver.consumer('copied', ({ body }) => void more.push(body));
    await announced(c);
    const body = { list: [1] };
    c.sender.publish('copied', body);
    body.list.push(2);
    await waitFor(() => seen.length + more.length === 2);
    assert.deepEqual([seen, more], [[{ list: [1] }], [{ list: [1] }]]);
    assert.notEqual(seen[0], more[0]);
  });

  check('3: a body that cannot travel throws, and nothing was sent', async (connected) => {
    const bodies = await bodiesOf(connected, 'strict');
    const { sender } = connected;
    const code = /^TRANSFER_/;
    assert.throws(() => sender.send('strict', new WeakMap()), { code });
    assert.throws(() => sender.publish('strict', new WeakMap()), { code });
    await assert.rejects(sender.request('strict', new WeakMap()), { code });
    sender.send('strict', 'last');
    await waitFor(() => bodies.length > 0);
    assert.deepEqual(bodies, ['last']);
  });

  check('4: a waiter gets the reply with its headers, and only the first', async (connected) => {
    const { sender, receiver } = connected;
    receiver.consumer('echo', (message) => {
      message.reply(message.body, { headers: { ...message.headers, back: 'yes' } });
      assert.throws(() => message.reply('again'), { code: 'BUS_REPLIED' });
    });
    await announced(connected);
    const headers = { 'with space': 'ü\n' };
    const reply = await sender.request('echo', { deep: [1, new Date(0)] }, { headers });
    assert.deepEqual(reply.body, { deep: [1, new Date(0)] });
    assert.deepEqual(reply.headers, { ...headers, back: 'yes' });
    assert.equal(reply.isAwaited, false);
  });

  check('4: a waiter gets the failure of its consumer', async (connected) => {
    const { sender, receiver } = connected;
    receiver.consumer('fail', (message) => message.fail(404, 'no such thing'));
    receiver.consumer('throw', () => {
      throw new TypeError('out of order');
    });
    receiver.consumer('reject', () => Promise.reject(new TypeError('out of order')));
    await announced(connected);
    await assert.rejects(sender.request('fail', 1), {
      code: 'BUS_FAILED',
      failureCode: 404,
      message: 'no such thing',
    });
    for (const address of ['throw', 'reject']) {
      const message = `the consumer of ${address} threw: out of order`;
      await assert.rejects(sender.request(address, 1), (error: unknown) => {
        assert.ok(hasCode(error, 'BUS_HANDLER_ERROR'));
        assert.equal(error.message, message);
        assert.ok(error.cause instanceof TypeError);
        assert.equal(error.cause.message, 'out of order');
        assert.match(error.cause.stack ?? '', /transport/);
        return true;
      });
    }
  });

  for (const [name, thrown, expected] of causes) {
    check(`4: the cause of a failure travels: ${name}`, async (connected) => {
      const { sender, receiver } = connected;
      receiver.consumer('throws', () => {
        throw thrown;
      });
      await announced(connected);
      const error = await sender.request('throws', 1).catch((caught: unknown) => caught);
      assert.ok(hasCode(error, 'BUS_HANDLER_ERROR'));
      expected(error.cause);
    });
  }

  check('4: a failure has its number and no cause', async (connected) => {
    const { sender, receiver } = connected;
    receiver.consumer('fail', (message) => message.fail(404, 'no such thing'));
    await announced(connected);
    const error = await sender.request('fail', 1).catch((caught: unknown) => caught);
    assert.equal(Object(error).cause, undefined);
  });

  check('4: without a consumer a waiter gets BUS_NO_HANDLERS', async (connected) => {
    const { sender, receiver } = connected;
    await assert.rejects(sender.request('nobody', 1), { code: 'BUS_NO_HANDLERS' });
    const closes = receiver.consumer('closes', (message) => message.reply('here'));
    await announced(connected);
    assert.equal((await sender.request('closes', 1)).body, 'here');
    closes.close();
    await announced(connected);
    await assert.rejects(sender.request('closes', 1), { code: 'BUS_NO_HANDLERS' });
    const { undelivered } = sender.stats;
    sender.send('nobody', 1);
    await waitFor(() => sender.stats.undelivered === undelivered + 1);
  });

  check('4: headers of several values arrive as a list, there and back', async (connected) => {
    const { sender, receiver } = connected;
    receiver.consumer('lists', (message) => {
      const { headers, headersDistinct } = message;
      message.reply({ headers, headersDistinct }, { headers: headersDistinct });
    });
    await announced(connected);
    const lists = ['b', 'c, d'];
    const given = { one: 'a', several: lists, single: ['e'] };
    const asked = sender.request('lists', 1, { headers: given });
    lists.push('later');
    const { body, headers, headersDistinct } = await asked;
    const got = {
      headers: { one: 'a', several: 'b, c, d', single: 'e' },
      headersDistinct: { one: ['a'], several: ['b', 'c, d'], single: ['e'] },
    };
    assert.deepEqual(body, got);
    assert.deepEqual({ headers, headersDistinct }, got);
  });

  check('5: a reply may have a waiter as well', async (connected) => {
    const { sender, receiver } = connected;
    receiver.consumer<number>('double', async (message) => {
      const thanks = await message.replyAndRequest(2 * message.body);
      thanks.reply(`${thanks.body}!`);
    });
    await announced(connected);
    const first = await sender.request<number>('double', 21);
    assert.deepEqual([first.body, first.isAwaited], [42, true]);
    const last = await first.replyAndRequest('thanks');
    assert.deepEqual([last.body, last.isAwaited], ['thanks!', false]);
  });

  check('6: a reply that cannot travel throws, and its waiter still waits', async (connected) => {
    const { sender, receiver } = connected;
    receiver.consumer('weak', (message) => {
      assert.throws(() => message.reply(new WeakMap()), { code: /^TRANSFER_/ });
      message.reply('plain');
    });
    await announced(connected);
    assert.equal((await sender.request('weak', 1)).body, 'plain');
  });

  check('7: a waiter that has given up drops its reply, and replies to no reply', async (c) => {
    const held: BusMessage[] = [];
    c.receiver.consumer('slow', (message) => void held.push(message));
    await announced(c);
    const abort = new AbortController();
    const aborted = c.sender.request('slow', 1, { signal: abort.signal });
    const late = c.sender.request('slow', 2, { timeoutMs: 20 });
    const ends = Promise.all([
      assert.rejects(aborted, { code: 'ABORTED' }),
      assert.rejects(late, { code: 'BUS_TIMEOUT' }),
    ]);
    await waitFor(() => held.length === 2);
    abort.abort();
    await ends;
    held[0]?.reply('too late');
    const reply = held[1]?.replyAndRequest('too late');
    await assert.rejects(reply ?? Promise.resolve(), { code: 'BUS_NO_HANDLERS' });
  });

  check('8: without room send() is false, and drained() follows', async (connected) => {
    const bodies = await bodiesOf(connected, 'many');
    const { sender } = connected;
    const body = 'x'.repeat(500);
    let sent = 1;
    for (; sender.send('many', body); sent += 1) assert.ok(sent < 100_000);
    await sender.drained();
    assert.equal(sender.send('many', body), true);
    await waitFor(() => bodies.length === sent + 1);
  });

  check('9: a publication reaches every consumer once, and expects no reply', async (connected) => {
    const seen: BusMessage[][] = [[], []];
    for (const messages of seen) {
      connected.receiver.consumer('news', (message) => void messages.push(message));
    }
    await announced(connected);
    connected.sender.publish('news', 'all', { headers: { a: 'b' } });
    await announced(connected);
    await waitFor(() => seen.every(({ length }) => length > 0));
    for (const messages of seen) {
      assert.deepEqual(
        messages.map(({ body, headers, isAwaited }) => [body, headers, isAwaited]),
        [['all', { a: 'b' }, false]],
      );
    }
  });

  check('10: codecs and interceptors see the same on every way', async (connected) => {
    const { sender, receiver } = connected;
    for (const bus of new Set([sender, receiver])) {
      bus.addCodec({ name: 'next', encode: (n: number) => n + 1, decode: (n) => n + 1 });
    }
    sender.intercept({ outbound: ({ body }) => ({ body: Number(body) * 10 }) });
    receiver.intercept({ inbound: ({ headers }) => ({ headers: { ...headers, seen: 'yes' } }) });
    receiver.intercept({
      outboundReply: ({ headers }) => ({ headers: { ...headers, out: 'yes' } }),
    });
    sender.intercept({ inboundReply: ({ headers }) => ({ headers: { ...headers, in: 'yes' } }) });
    receiver.consumer('next', ({ body, headers }) => {
      assert.deepEqual([body, headers], [12, { seen: 'yes' }]);
    });
    receiver.consumer('back', (message) => message.reply(message.body, { codec: 'next' }));
    await announced({ sender: receiver, receiver });
    const address = 'probe of interceptors';
    receiver.consumer(address, (message) => message.reply(message.headers['seen']));
    await waitFor(() => sender.request(address, 1).catch(() => undefined));
    assert.equal((await sender.request(address, 1)).body, 'yes');
    sender.send('next', 1, { codec: 'next' });
    const back = await sender.request<number>('back', 1, { codec: 'next' });
    assert.deepEqual([back.body, back.headers], [14, { out: 'yes', in: 'yes' }]);
  });

  for (const [name, code, text, accept] of refusals) {
    check(`12: the opener gets the error where the accepting side ${name}`, async (connected) => {
      const { sender, receiver } = connected;
      const later = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 20));
      receiver.acceptStreams('refusing', (stream) => accept(stream, later));
      await announced(connected);
      const error = await refusedBy(sender, 'refusing', name.endsWith('later'));
      assert.ok(hasCode(error, code), String(error));
      assert.match(error.message, text);
      await announced(connected); // nothing else has ended
    });
  }

  if (lostCode === undefined) return;
  check('11: when it ends, waiting requests reject and new ones find no consumer', async (c) => {
    const { sender, receiver, end } = c;
    let count = 0;
    receiver.consumer('never', () => {
      count += 1;
    });
    await announced(c);
    const waiting = sender.request('never', 1);
    const rejected = assert.rejects(waiting, { code: lostCode });
    await waitFor(() => count === 1);
    await end?.();
    await rejected;
    await assert.rejects(sender.request('never', 1), { code: 'BUS_NO_HANDLERS' });
  });
}
