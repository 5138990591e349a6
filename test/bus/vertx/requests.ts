// Vert.x's cases of requests, replies and their failures (LocalEventBusTest, EventBusTestBase).

import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { EventBus } from '../../../src/bus/index.js';
import type { BusMessage } from '../../../src/public.js';
import { answer, type Case, record } from './case.js';

const timeoutMs = 30;
const longMs = 20_000;

/** A request that no reply comes to. */
const unanswered = { code: 'BUS_TIMEOUT' };

export const requestCases: readonly Case[] = [
  {
    name: 'testDeliveryOptions',
    expects: 'wrong options are refused',
    run: async ({ bus, address }) => {
      const refused = { code: 'OPTION_INVALID' };
      for (const timeoutMs of [0, -1, Number.NaN]) {
        await assert.rejects(bus.request(address, 0, { timeoutMs }), refused);
      }
      assert.throws(() => bus.send(address, 0, { codec: '' }), refused);
    },
  },
  {
    name: 'testArgumentValidation',
    expects: 'calls without an address or handler are refused',
    run: async ({ bus, address }) => {
      const none: string = Object(undefined);
      const refused = { code: 'OPTION_INVALID' };
      assert.throws(() => bus.send(none, ''), refused);
      assert.throws(() => bus.publish(none, ''), refused);
      await assert.rejects(bus.request(none, ''), refused);
      assert.throws(() => bus.consumer(none), refused);
      const noHandler: () => void = Object(undefined);
      assert.throws(() => bus.consumer(address, noHandler, {}), refused);
      assert.throws(() => bus.address(none), refused);
    },
  },
  {
    name: 'testSendWithReply',
    expects: 'the requester gets the reply',
    run: async ({ bus, address, there }) => {
      await there(answer(address, 'reply'));
      assert.equal((await bus.request(address, 'any')).body, 'reply');
    },
  },
  {
    name: 'testReplyToReply',
    expects: 'a reply may ask for a reply',
    run: async ({ bus, address, there, noted }) => {
      await there(({ bus: other, note }) => {
        other.consumer(address, async (message) => {
          note((await message.replyAndRequest('reply')).body);
        });
      });
      const reply = await bus.request(address, 'any');
      assert.equal(reply.body, 'reply');
      reply.reply('reply to the reply');
      assert.deepEqual(await noted(1), ['reply to the reply']);
    },
  },
  {
    name: 'testSendReplyWithTimeout',
    expects: 'the replier gets a timeout when its reply gets none',
    run: async ({ bus, address, there, noted }) => {
      await there(({ bus: other, note }) => {
        other.consumer(address, async (message) => {
          await message
            .replyAndRequest('reply', { timeoutMs })
            .catch((error: unknown) => note(Reflect.get(Object(error), 'code')));
        });
      });
      assert.equal((await bus.request(address, 'any')).body, 'reply');
      assert.deepEqual(await noted(1), [unanswered.code]);
    },
  },
  {
    name: 'testSendReplyWithTimeoutNoTimeout',
    expects: 'a reply within the time limit counts',
    run: async ({ bus, address, there, noted }) => {
      await there(({ bus: other, note }) => {
        other.consumer(address, async (message) => {
          note((await message.replyAndRequest('reply', { timeoutMs: longMs })).body);
        });
      });
      (await bus.request(address, 'any')).reply('in time');
      assert.deepEqual(await noted(1), ['in time']);
    },
  },
  {
    name: 'testSendWithTimeoutNoTimeoutReply',
    expects: 'a reply within the time limit counts',
    run: async ({ bus, address, there }) => {
      await there(answer(address, 23));
      assert.equal((await bus.request(address, 'any', { timeoutMs: longMs })).body, 23);
    },
  },
  {
    name: 'testSendWithTimeoutNoTimeoutNoReply',
    expects: 'the consumer gets a request with a time limit',
    run: async ({ bus, address, there, noted }) => {
      await there(record(address));
      const request = bus.request(address, 'body', { timeoutMs: 1000 });
      request.catch(() => {});
      assert.deepEqual(await noted(1), ['body']);
    },
  },
  {
    name: 'testSendWithTimeoutNoReply',
    expects: 'a request without a reply rejects after its time limit',
    run: async ({ bus, address, there }) => {
      await there(record(address));
      await assert.rejects(bus.request(address, 'any', { timeoutMs }), unanswered);
    },
  },
  {
    name: 'testSendWithTimeoutNoHandlers',
    expects: 'a request without a consumer rejects at once, with the address in its text',
    run: async ({ bus, address }) => {
      await assert.rejects(bus.request(address, 'any', { timeoutMs: longMs }), {
        code: 'BUS_NO_HANDLERS',
        message: new RegExp(`^${address} has no consumers`),
      });
    },
  },
  {
    name: 'testSendWithTimeoutRecipientFailure',
    expects: 'the failure of the consumer rejects the request, with its code and text',
    run: async ({ bus, address, there }) => {
      await there(({ bus: other }) => {
        other.consumer(address, (message) => message.fail(123, 'a failure'));
      });
      await assert.rejects(bus.request(address, 'any', { timeoutMs: longMs }), {
        code: 'BUS_FAILED',
        failureCode: 123,
        message: 'a failure',
      });
    },
  },
  {
    name: 'testSendWithTimeoutReplyAfterTimeout',
    expects: 'a reply after the time limit has no effect',
    run: async ({ bus, address, there, noted }) => {
      await there(({ bus: other, kept, note }) => {
        const held: BusMessage[] = [];
        other.consumer(address, (message) => {
          held.push(message);
          note('held');
        });
        const late = (): void => {
          for (const message of held) message.reply('too late');
          note(held.length);
        };
        kept.set('late', { close: () => {}, [Symbol.dispose]: () => {}, resume: late });
      });
      await assert.rejects(bus.request(address, 'any', { timeoutMs }), unanswered);
      await noted(1); // its message may come after the time limit
      await there(({ kept }) => void kept.get('late')?.resume?.());
      assert.deepEqual(await noted(2), ['held', 1]);
    },
  },
  {
    name: 'testSendWithTimeoutNoTimeoutAfterReply',
    expects: 'a request settles once, by its reply',
    run: async ({ bus, address, there }) => {
      await there(answer(address, 'a reply'));
      const outcomes: unknown[] = [];
      const request = bus.request(address, 'any', { timeoutMs: longMs });
      await request.then(({ body }) => outcomes.push(body));
      assert.deepEqual(outcomes, ['a reply']);
    },
  },
  {
    name: 'testReplyToSendWithNoReplyHandler',
    expects: 'a reply that nobody waits for does nothing',
    run: ({ bus, address, there, noted }) =>
      silent({ there, noted, address }, 'reply', () => bus.send(address, 'any')),
  },
  {
    name: 'testReplyToPublish',
    expects: 'a reply to a publication does nothing',
    run: ({ bus, address, there, noted }) =>
      silent({ there, noted, address }, 'reply', () => bus.publish(address, 'any')),
  },
  {
    name: 'testFailAfterSend',
    expects: 'a failure that nobody waits for does nothing',
    run: ({ bus, address, there, noted }) =>
      silent({ there, noted, address }, 'fail', () => bus.send(address, 'any')),
  },
  {
    name: 'testFailAfterPublish',
    expects: 'a failure of a publication does nothing',
    run: ({ bus, address, there, noted }) =>
      silent({ there, noted, address }, 'fail', () => bus.publish(address, 'any')),
  },
  {
    name: 'testCloseEventBus',
    expects: 'a bus closes, also twice',
    run: async ({ address }) => {
      const closing = new EventBus({ copy: structuredClone });
      closing.consumer(address, () => {});
      const request = closing.request(address, 'any');
      closing.close();
      closing.close();
      await assert.rejects(request, { code: 'BUS_CLOSED' });
    },
  },
  {
    name: 'testNoHandlersCallbackContext',
    expects: 'the failure arrives in the context of the request',
    run: async ({ bus, address }) => {
      const context = new AsyncLocalStorage<string>();
      await context.run('mine', async () => {
        await assert.rejects(bus.request(address, 0), { code: 'BUS_NO_HANDLERS' });
        assert.equal(context.getStore(), 'mine');
      });
    },
  },
  ...['testReplyFromWorker', 'testSendFromExecuteBlocking'].map((name) => ({
    name,
    expects: 'code in a blocking thread uses the bus',
    differs:
      'A thread of `executeBlocking` returns its result to the unit, which sends or replies.',
  })),
  ...['testContextsSend', 'testContextsPublish'].map((name) => ({
    name,
    expects: 'each consumer has an event loop of its own',
    differs: 'The consumers of one loop run in its one thread; units spread over several loops.',
  })),
];

interface Silent {
  readonly address: string;
  readonly there: (act: ReturnType<typeof record>) => Promise<unknown>;
  readonly noted: (count: number) => Promise<readonly unknown[]>;
}

async function silent(
  { there, noted, address }: Silent,
  how: 'reply' | 'fail',
  send: () => boolean,
): Promise<void> {
  await there(({ bus, note }) => {
    bus.consumer(address, (message) => {
      if (how === 'reply') message.reply('a reply');
      else message.fail(0, 'a failure');
      note('went on');
    });
  });
  send();
  assert.deepEqual(await noted(1), ['went on']);
}
