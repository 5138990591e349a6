// Wrong options of bus calls: refused before anything is sent.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { runInNewContext } from 'node:vm';
import { type Bus, type BusMessage, EventBus } from '../../src/bus/index.js';
import { registerMetrics } from '../../src/observe/metrics/public.js';
import { waitFor } from '../support/index.js';

type Call = (bus: Bus, options: unknown) => unknown;

const apply = (bus: Bus, method: string, ...args: unknown[]): unknown =>
  Reflect.apply(Reflect.get(bus, method), bus, args);

/** A message whose requester waits. */
async function requested(bus: Bus): Promise<BusMessage> {
  const got: BusMessage[] = [];
  const consumer = bus.consumer('asked', (message) => void got.push(message));
  bus.request('asked', 1).catch(() => {});
  await waitFor(() => got.length > 0);
  consumer.close();
  assert.ok(got[0]);
  return got[0];
}

const calls: Readonly<Record<string, Call>> = {
  send: (bus, options) => apply(bus, 'send', 'a', 1, options),
  publish: (bus, options) => apply(bus, 'publish', 'a', 1, options),
  request: (bus, options) => apply(bus, 'request', 'a', 1, options),
  openStream: (bus, options) => apply(bus, 'openStream', 'a', options),
  consumer: (bus, options) => apply(bus, 'consumer', 'a', () => {}, options),
  acceptStreams: (bus, options) => apply(bus, 'acceptStreams', 'a', () => {}, options),
  reply: async (bus, options) => {
    const message = await requested(bus);
    return Reflect.apply(message.reply, message, [1, options]);
  },
  replyAndRequest: async (bus, options) => {
    const message = await requested(bus);
    return await Reflect.apply(message.replyAndRequest, message, [1, options]);
  },
};

function openBus(t: TestContext): EventBus {
  const bus = new EventBus({ copy: structuredClone });
  t.after(() => bus.close());
  return bus;
}

/** Messages that a call in the table above sends before it is refused: the request that it answers. */
const sentBefore = (name: string): number => (name.startsWith('reply') ? 1 : 0);

const refused = (call: () => unknown, message: RegExp) =>
  assert.rejects(async () => await call(), { code: 'OPTION_INVALID', message });

for (const [name, call] of Object.entries(calls)) {
  test(`${name} refuses what is no object of options`, async (t) => {
    const bus = openBus(t);
    for (const options of [null, 5, 'x', []]) {
      await refused(
        () => call(bus, options),
        new RegExp(`^the options of ${name} must be an object`),
      );
    }
    assert.equal(bus.stats.sent, 4 * sentBefore(name));
  });

  test(`${name} refuses an option that there is not`, async (t) => {
    const bus = openBus(t);
    await refused(
      () => call(bus, { colour: 'red' }),
      new RegExp(`^there is no "colour" in the options of ${name}`),
    );
  });
}

for (const [name, given, wanted] of [
  ['request', 'timeout', 'timeoutMs'],
  ['request', 'timeoutMS', 'timeoutMs'],
  ['openStream', 'timeout', 'timeoutMs'],
  ['consumer', 'maxBuffer', 'maxBuffered'],
  ['reply', 'header', 'headers'],
  ['send', 'Codec', 'codec'],
] as const) {
  test(`${given} of ${name} is named with ${wanted}`, async (t) => {
    const bus = openBus(t);
    await refused(
      () => calls[name]?.(bus, { [given]: 1 }),
      new RegExp(`did you mean ${wanted}\\?$`),
    );
  });
}

for (const [name, options, message] of [
  ['send', { headers: 'x' }, /^headers is "x": it must be an object of texts$/],
  ['send', { headers: ['a'] }, /^headers is an array/],
  ['publish', { headers: null }, /^headers is null/],
  ['reply', { headers: 5 }, /^headers is 5/],
  [
    'send',
    { headers: { a: [] } },
    /^headers\.a is .*: it must be a text, or a list of one or more/,
  ],
  ['reply', { headers: { a: ['b', 1] } }, /^headers\.a is .*: it must be a text, or a list/],
  ['request', { headers: { a: Array(1) } }, /^headers\.a is .*: it must be a text, or a list/],
  ['send', { headers: new Map([['a', 'b']]) }, /^headers is a Map: it must be a plain object/],
  ['publish', { headers: new Headers({ a: 'b' }) }, /^headers is a Headers: .*Object\.fromEntries/],
  ['request', { headers: new Date() }, /^headers is a Date: it must be a plain object/],
  ['openStream', { headers: new Map() }, /^headers is a Map/],
  ['reply', { headers: new (class Tags {})() }, /^headers is a Tags/],
  ['replyAndRequest', { headers: new Map() }, /^headers is a Map/],
  ['request', { signal: 5 }, /^signal is 5: it must be an AbortSignal$/],
  ['request', { signal: new AbortController() }, /: pass controller\.signal$/],
  ['request', { timeoutMs: '5' }, /^timeoutMs is "5"/],
] as const) {
  test(`${name} with ${Object.keys(options)} ${message.source} is refused`, async (t) => {
    const bus = openBus(t);
    await refused(() => calls[name]?.(bus, options), message);
    assert.equal(bus.stats.sent, sentBefore(name));
  });
}

test('headers without a prototype, or of another realm, travel', async (t) => {
  const bus = openBus(t);
  const got: unknown[] = [];
  bus.consumer('a', ({ headers }) => void got.push({ ...headers }));
  const bare = Object.assign(Object.create(null), { a: 'b' });
  for (const headers of [bare, runInNewContext(`({ a: 'b' })`), {}]) bus.send('a', 1, { headers });
  await waitFor(() => got.length === 3);
  assert.deepEqual(got, [{ a: 'b' }, { a: 'b' }, {}]);
});

test('answer() without a handler, and a codec that is none, are refused', async (t) => {
  const bus = openBus(t);
  const address = bus.address('a');
  await refused(() => Reflect.apply(address.answer, address, []), /^handler is undefined/);
  for (const codec of [undefined, null, 5]) {
    await refused(() => apply(bus, 'addCodec', codec), /^codec is .*: it must be an object/);
  }
});

test('registerMetrics() without a registry is refused', async () => {
  for (const registry of [undefined, null, {}, 5]) {
    await refused(() => Reflect.apply(registerMetrics, undefined, [registry]), /^registry is /);
  }
});
