// Vert.x's cases of sending and publishing, headers and producers (LocalEventBusTest, EventBusTestBase).

import assert from 'node:assert/strict';
import { waitFor } from '../../support/index.js';
import { type Act, type Case, type Ends, record } from './case.js';

/** Notes the body and headers of each message. */
function recordHeaders(address: string): Act {
  return ({ bus, note }) => {
    bus.consumer(address, ({ body, headers }) => note([body, { ...headers }]));
  };
}

const headers = { header1: 'one', header2: 'two' };

async function publishes(
  ends: Ends,
  registered: readonly string[],
  closed?: string,
): Promise<void> {
  const { bus, address, there, noted } = ends;
  for (const name of registered) await there(record(address, name));
  if (closed !== undefined) await there(({ kept }) => kept.get(closed)?.close());
  bus.publish(address, 'body');
  const count = registered.length - (closed === undefined ? 0 : 1);
  assert.deepEqual(await noted(count), new Array(count).fill('body'));
}

async function elsewhere(ends: Ends, call: 'send' | 'publish'): Promise<void> {
  const { bus, address, there, noted } = ends;
  await there(record(address));
  await there(record(`${address} other`, 'other'));
  bus[call](address, 1);
  bus[call](address, 2);
  assert.deepEqual(await noted(2), [1, 2]);
}

const storedOptions = (name: string): Case => ({
  name,
  expects: 'a producer adds its stored headers to each message',
  differs: 'An address stores no options: each call gives its own.',
  run: async ({ bus, address, there, noted }) => {
    await there(recordHeaders(address));
    const producer = bus.address(address);
    producer.send('a', { headers });
    producer.publish('b', { headers });
    assert.deepEqual(await noted(2), [
      ['a', headers],
      ['b', headers],
    ]);
  },
});

const producer = (name: string, call: 'send' | 'publish', consumers: number): Case => ({
  name,
  expects: 'a producer sends to its address',
  run: async ({ bus, address, there, noted }) => {
    for (let at = 0; at < consumers; at += 1) await there(record(address, String(at)));
    const to = bus.address(address);
    assert.equal(to.name, address);
    to[call]('body');
    assert.deepEqual(await noted(consumers), new Array(consumers).fill('body'));
  },
});

const nothingToClose = (name: string): Case => ({
  name,
  expects: 'a producer closes',
  differs: 'An address holds nothing, so it has no `close()`.',
});

const written = (name: string, call: 'send' | 'publish'): Case => ({
  name,
  expects: 'the write of a producer completes',
  run: async ({ bus, address, there, noted }) => {
    await there(record(address));
    assert.equal(bus.address(address)[call]('body'), true);
    await bus.drained();
    assert.deepEqual(await noted(1), ['body']);
  },
});

const unreported = (name: string, call: 'send' | 'publish'): Case => ({
  name,
  expects: 'the write of a producer fails when there is no consumer',
  differs:
    '`send` and `publish` report no consumers; `stats.undelivered` counts, and `request` rejects.',
  run: async ({ bus, address }) => {
    const before = bus.stats.undelivered;
    bus.address(address)[call]('body');
    await waitFor(() => bus.stats.undelivered > before);
  },
});

export const sendingCases: readonly Case[] = [
  {
    name: 'testSendWithNoHandler',
    expects: 'a message without a consumer does nothing',
    run: async ({ bus, address, there }) => {
      bus.send(address, 'body');
      await there(() => {});
    },
  },
  {
    name: 'testSendMultipleAddresses',
    expects: 'a message reaches its address alone',
    run: (ends) => elsewhere(ends, 'send'),
  },
  { name: 'testPublish', expects: 'a consumer gets it', run: (ends) => publishes(ends, ['a']) },
  {
    name: 'testPublishMultipleHandlers',
    expects: 'all consumers get it',
    run: (ends) => publishes(ends, ['a', 'b']),
  },
  {
    name: 'testPublishSameHandlerRegisteredTwice',
    expects: 'a handler that is registered twice gets it twice',
    run: (ends) => publishes(ends, ['a', 'b']),
  },
  {
    name: 'testPublishMultipleHandlersUnregisterOne',
    expects: 'a closed consumer does not get it',
    run: (ends) => publishes(ends, ['a', 'b'], 'b'),
  },
  {
    name: 'testPublishMultipleHandlersDifferentAddresses',
    expects: 'a publication reaches its address alone',
    run: (ends) => elsewhere(ends, 'publish'),
  },
  {
    name: 'testSendWithHeaders',
    expects: 'the headers arrive',
    run: async ({ bus, address, there, noted }) => {
      await there(recordHeaders(address));
      bus.send(address, 'body', { headers });
      assert.deepEqual(await noted(1), [['body', headers]]);
    },
  },
  {
    name: 'testSendWithDeliveryOptionsButNoHeaders',
    expects: 'a message without headers has none',
    run: async ({ bus, address, there, noted }) => {
      await there(recordHeaders(address));
      bus.send(address, 'body', {});
      assert.deepEqual(await noted(1), [['body', {}]]);
    },
  },
  {
    name: 'testReplyWithHeaders',
    expects: 'the headers of a reply arrive',
    run: async ({ bus, address, there }) => {
      await there(({ bus: other }) => {
        other.consumer(address, (message) => message.reply('reply', { headers }));
      });
      assert.deepEqual({ ...(await bus.request(address, 'any')).headers }, headers);
    },
  },
  {
    name: 'testHeadersCopiedAfterSend',
    expects: 'headers that change after the call arrive as they were',
    run: async ({ bus, address, there, noted }) => {
      await there(recordHeaders(address));
      const given: Record<string, string> = { foo: 'bar' };
      bus.send(address, 'body', { headers: given });
      Reflect.deleteProperty(given, 'foo');
      assert.deepEqual(await noted(1), [['body', { foo: 'bar' }]]);
    },
  },
  {
    name: 'testMultiHeaders',
    expects: 'all values of a header arrive, in their order',
    run: async ({ bus, address, there, noted }) => {
      await there(({ bus: other, note }) => {
        other.consumer(address, ({ headersDistinct }) => note({ ...headersDistinct }));
      });
      bus.send(address, 'body', { headers: { a: ['1', '5', '6', '7'], b: ['3', '8'], d: '4' } });
      assert.deepEqual(await noted(1), [{ a: ['1', '5', '6', '7'], b: ['3', '8'], d: ['4'] }]);
    },
  },
  {
    name: 'testNonRegisteredCodecType',
    expects: 'a body of a class without a codec is refused',
    differs: 'Objects of any class travel without a codec; what cannot travel is refused.',
    run: async ({ bus, address, there, notes }) => {
      await there(record(address));
      assert.throws(() => bus.send(address, new WeakMap()), { code: 'TRANSFER_UNSUPPORTED' });
      await there(() => {});
      assert.deepEqual(notes, []);
    },
  },
  producer('testSender', 'send', 1),
  producer('testPublisher', 'publish', 2),
  storedOptions('testSenderWithOptions'),
  storedOptions('testPublisherWithOptions'),
  storedOptions('testUpdateDeliveryOptionsOnProducer'),
  {
    name: 'testUpdateDeliveryOptionsOnProducerWrite',
    expects: 'each write has headers of its own',
    run: async ({ bus, address, there, noted }) => {
      await there(recordHeaders(address));
      const to = bus.address(address);
      for (const at of ['0', '1', '2']) to.send('body', { headers: { at } });
      assert.deepEqual(
        await noted(3),
        ['0', '1', '2'].map((at) => ['body', { at }]),
      );
    },
  },
  nothingToClose('testCloseSender1'),
  nothingToClose('testClosePublisher1'),
  nothingToClose('testCloseSender'),
  nothingToClose('testClosePublisher'),
  written('testSendWriteHandler', 'send'),
  written('testPublishWriteHandler', 'publish'),
  unreported('testSendWriteHandlerNoConsumer', 'send'),
  unreported('testPublishWriteHandlerNoConsumer', 'publish'),
  unreported('testPublisherCanReceiveNoHandlersFailure', 'publish'),
  {
    name: 'sendNoContext',
    expects: 'a thousand messages arrive in their order',
    run: (ends) => inOrder(ends, 1000),
  },
  {
    name: 'testPreserveMessageOrderingOnContext',
    expects: 'messages arrive in their order',
    run: (ends) => inOrder(ends, 256),
  },
];

async function inOrder({ bus, address, there, noted }: Ends, count: number): Promise<void> {
  await there(record(address));
  const sent = Array.from({ length: count }, (_, at) => at);
  for (const each of sent) bus.send(address, each);
  assert.deepEqual(await noted(count), sent);
}
