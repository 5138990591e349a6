// Vert.x's cases of consumers: registered, by turns, paused, closed (LocalEventBusTest).

import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { EventBus } from '../../../src/bus/index.js';
import { waitFor } from '../../support/index.js';
import { answer, type Case, type Ends, record } from './case.js';

const close = (name: string) => (end: Parameters<ReturnType<typeof record>>[0]) =>
  end.kept.get(name)?.close();

const local = (name: string): Case => ({
  name,
  expects: 'a local consumer gets messages of its own loop',
  run: async ({ bus, address }) => {
    const got: unknown[] = [];
    using _ = bus.consumer(address, ({ body }) => got.push(body), { isLocal: true });
    bus.send(address, 'body');
    await waitFor(() => got.length > 0);
    assert.deepEqual(got, ['body']);
  },
});

const noCompletion = (name: string): Case => ({
  name,
  expects: 'a future completes when the consumer is registered everywhere',
  differs:
    'A consumer is registered in its loop at once, and its announcement precedes all later messages; there is no future for it.',
  run: async ({ bus, address }) => {
    const got: unknown[] = [];
    using _ = bus.consumer(address, ({ body }) => got.push(body));
    bus.send(address, 1, { local: 'only' });
    await waitFor(() => got.length > 0);
  },
});

/** Eleven messages to a paused consumer that buffers ten. */
const paused = (name: string, throws: boolean): Case => ({
  name,
  expects: 'a paused consumer buffers up to its limit, the rest is dropped, and resume delivers',
  run: async ({ bus, address, there, noted }) => {
    await there(({ bus: other, note, kept }) => {
      const handler = ({ body }: { readonly body: unknown }): void => {
        note(body);
        if (throws) throw new Error('of the handler');
      };
      kept.set('consumer', other.consumer(address, handler, { maxBuffered: 10 }).pause());
    });
    const sent = Array.from({ length: 11 }, (_, at) => at);
    for (const each of sent) bus.publish(address, each);
    await there(() => {});
    await there(({ kept }) => void kept.get('consumer')?.resume?.());
    assert.deepEqual(await noted(10), sent.slice(0, 10));
  },
});

const noBodyStream = (name: string): Case => ({
  name,
  expects: 'the same for a stream of bodies',
  differs: 'A consumer has no second stream of its bodies: `for await` iterates its messages.',
});

const ended = (name: string): Case => ({
  name,
  expects: 'unregistering ends the consumer, and its end handler is called',
  run: async ({ bus, address }) => {
    const consumer = bus.consumer(address, () => {});
    assert.equal(consumer.isClosed, false);
    consumer.close();
    await consumer.closed;
    assert.equal(consumer.isClosed, true);
  },
});

const nullHandler = (name: string): Case => ({
  ...ended(name),
  expects: 'a handler of null unregisters the consumer',
  differs: 'The handler of a consumer is fixed; `close()` unregisters it.',
});

/** Sends a request to a paused consumer, which then ends by `end`. */
const early = (name: string, code: string, maxBuffered: number): Case => ({
  name,
  expects: 'a request that no consumer can get any more rejects early, as a timeout',
  differs: `It rejects early with its reason, \`${code}\`, not as a timeout.`,
  run: async ({ bus, address, there }) => {
    await there(({ bus: other, kept }) => {
      kept.set('consumer', other.consumer(address, () => {}, { maxBuffered }).pause());
    });
    const rejects = (got: string): Promise<void> =>
      assert.rejects(bus.request(address, 0), { code: got });
    const first = rejects('BUS_NO_HANDLERS');
    const second = rejects(code);
    if (maxBuffered === 1) await second;
    await there(close('consumer'));
    await Promise.all([first, second]);
  },
});

async function byTurns(ends: Ends, consumers: number, closed: readonly number[]): Promise<void> {
  const { bus, address, there, noted } = ends;
  const messages = 10;
  for (let at = 0; at < consumers; at += 1) {
    await there(({ bus: other, note, kept }) => {
      kept.set(
        String(at),
        other.consumer(address, () => note(at)),
      );
    });
  }
  for (const at of closed) await there(close(String(at)));
  const left = Array.from({ length: consumers }, (_, at) => at).filter(
    (at) => !closed.includes(at),
  );
  for (let at = 0; at < messages * left.length; at += 1) bus.send(address, at);
  const notes = await noted(messages * left.length);
  for (const at of left) assert.equal(notes.filter((each) => each === at).length, messages);
}

export const consumerCases: readonly Case[] = [
  {
    name: 'testRegisterUnregister',
    expects: 'a consumer gets messages until it is closed',
    run: async ({ bus, address, there, noted, notes }) => {
      await there(record(address));
      bus.send(address, 'body');
      await noted(1);
      await there(close('consumer'));
      bus.send(address, 'late');
      await there(() => {});
      assert.deepEqual(notes, ['body']);
    },
  },
  {
    name: 'testUnregisterTwice',
    expects: 'a second call does nothing',
    run: async ({ bus, address }) => {
      const consumer = bus.consumer(address, () => {});
      consumer.close();
      consumer.close();
      await consumer.closed;
    },
  },
  {
    name: 'testMessageConsumerCloseHookIsClosedCorrectly',
    expects: 'the list of close hooks of a context does not grow',
    absent: 'It reads a list inside a Java context.',
  },
  local('testRegisterLocal1'),
  local('testRegisterLocal2'),
  noCompletion('testRegisterWithCompletionHandler'),
  noCompletion('testConsumerHandlesCompletionAsynchronously'),
  noCompletion('testConsumerHandlesCompletionAsynchronously1'),
  noCompletion('testConsumerHandlesCompletionAsynchronously2'),
  {
    name: 'testSendRoundRobin',
    expects: 'consumers get messages by turns',
    run: (ends) => byTurns(ends, 10, []),
  },
  {
    name: 'testSendRegisterSomeUnregisterOne',
    expects: 'those that are left get messages by turns',
    run: (ends) => byTurns(ends, 10, [3]),
  },
  {
    name: 'testSendRegisterSameHandlerMultipleTimes',
    expects: 'a handler that is registered three times gets each message once',
    run: async ({ bus, address, there, noted }) => {
      for (const name of ['a', 'b', 'c']) await there(record(address, name));
      for (const each of [1, 2, 3]) bus.send(address, each);
      assert.deepEqual([...(await noted(3))].sort(), [1, 2, 3]);
    },
  },
  paused('testPauseResumeMessageStream', false),
  noBodyStream('testPauseResumeBodyStream'),
  {
    name: 'testPauseFetchMessageStream',
    expects:
      'a paused consumer delivers as many as fetched, buffers up to its limit and drops the rest',
    run: async ({ bus, address, there, noted }) => {
      await there(({ bus: other, note, kept }) => {
        const handler = ({ body }: { readonly body: unknown }) => note(body);
        kept.set('consumer', other.consumer(address, handler, { maxBuffered: 5 }).pause().fetch(4));
      });
      for (let at = 0; at < 11; at += 1) bus.publish(address, at);
      assert.deepEqual(await noted(4), [0, 1, 2, 3]);
      await there(({ kept }) => void kept.get('consumer')?.resume?.());
      assert.deepEqual(await noted(9), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
    },
  },
  noBodyStream('testPauseFetchBodyStream'),
  paused('testExceptionWhenDeliveringBufferedMessageWithMessageStream', true),
  noBodyStream('testExceptionWhenDeliveringBufferedMessageWithBodyStream'),
  ended('testUnregisterationOfRegisteredConsumerCallsEndHandlerWithMessageStream'),
  noBodyStream('testUnregisterationOfRegisteredConsumerCallsEndHandlerWithBodyStream'),
  ended('testUnregisterThenUnsetEndHandler'),
  nullHandler('testUnregistrationWhenSettingNullHandlerWithConsumer'),
  nullHandler('testUnregistrationWhenSettingNullHandlerWithBodyStream'),
  {
    name: 'testCloseCallsEndHandlerWithRegistrationContext',
    expects: 'the end of the bus ends the consumer, in the context of its registration',
    run: async ({ address }) => {
      const closing = new EventBus({ copy: structuredClone });
      const context = new AsyncLocalStorage<string>();
      const seen = context.run('mine', async () => {
        await closing.consumer(address, () => {}).closed;
        return context.getStore();
      });
      closing.close();
      assert.equal(await seen, 'mine');
    },
  },
  {
    name: 'testConsumerUnregisterDoesNotCancelTimer0',
    expects: 'the end of a consumer cancels no timer',
    run: async ({ bus, address }) => {
      const fired = new Promise<void>((resolve) => setTimeout(resolve, 5));
      bus.consumer(address, () => {}).close();
      await fired;
    },
  },
  {
    name: 'testConsumerUnregistrationContextCallback',
    expects: 'the end arrives in the context of the call',
    run: async ({ bus, address }) => {
      const context = new AsyncLocalStorage<string>();
      await context.run('mine', async () => {
        const consumer = bus.consumer(address, () => {});
        consumer.close();
        await consumer.closed;
        assert.equal(context.getStore(), 'mine');
      });
    },
  },
  {
    name: 'testUnregisterConsumerDiscardPendingMessages',
    expects: 'messages that wait at a closed consumer are discarded',
    differs: 'They go to other consumers of the address; without any they count as undelivered.',
    run: async ({ bus, address, there, noted }) => {
      await there(({ bus: other, kept, note }) => {
        kept.set('paused', other.consumer(address, () => note('paused')).pause());
      });
      bus.send(address, 'val1');
      await there(() => {});
      await there(record(address));
      await there(close('paused'));
      assert.deepEqual(await noted(1), ['val1']);
    },
  },
  {
    name: 'testImmediateUnregistration',
    expects: 'a consumer that is closed right after its registration ends once',
    run: async ({ bus, address }) => {
      const consumer = bus.consumer(address, () => {});
      consumer.close();
      await consumer.closed;
      await assert.rejects(bus.request(address, 0), { code: 'BUS_NO_HANDLERS' });
    },
  },
  {
    name: 'testUnregisterInHandler',
    expects: 'a consumer that its handler closes gets no further message',
    run: async ({ bus, address, there, noted }) => {
      await there(({ bus: other, note, kept }) => {
        const consumer = other.consumer(address, ({ body }) => {
          note(body);
          consumer.close();
        });
        kept.set('consumer', consumer.pause());
      });
      bus.send(address, 'msg-1');
      bus.send(address, 'msg-2');
      await there(({ kept }) => void kept.get('consumer')?.resume?.());
      assert.deepEqual(await noted(1), ['msg-1']);
    },
  },
  early('testEarlyTimeoutOfBufferedMessagesOnHandlerUnregistration', 'BUS_NO_HANDLERS', 10),
  early('testEarlyTimeoutOnHandlerUnregistration', 'BUS_NO_HANDLERS', 10),
  early('testEarlyTimeoutWhenMaxBufferedMessagesExceeded', 'BUS_FULL', 1),
  {
    name: 'testMessageConsumptionStayOnWorkerThreadAfterResume',
    expects: 'a consumer of a worker context stays in its thread',
    absent: 'Only a blocking unit has a thread of its own, for all that it does.',
  },
  {
    name: 'testClusteredUnregistration',
    expects: 'a closed consumer is reached from no end any more',
    run: async ({ bus, address, there }) => {
      await there(({ bus: other, kept }) => {
        kept.set(
          'consumer',
          other.consumer(address, (message) => message.reply(message.body)),
        );
      });
      assert.equal((await bus.request(address, 'echo')).body, 'echo');
      await there(close('consumer'));
      await assert.rejects(bus.request(address, 'echo'), { code: 'BUS_NO_HANDLERS' });
      const code = await there(({ bus: other }) =>
        other
          .request(address, 'echo')
          .catch((error: unknown) => Reflect.get(Object(error), 'code')),
      );
      assert.equal(code, 'BUS_NO_HANDLERS');
    },
  },
  {
    name: 'testSelfSendDoesNotTrampoline',
    expects: 'no handler runs inside the call that sends to it',
    run: async ({ bus, address, there }) => {
      let count = 0;
      using _ = bus.consumer(address, () => {
        count += 1;
      });
      bus.send(address, 'ping');
      assert.equal(count, 0);
      await waitFor(() => count === 1);
      await there(answer(`${address} other`, 0));
    },
  },
];
