// Vert.x's cases of interceptors (EventBusInterceptorTest).

import assert from 'node:assert/strict';
import type { InterceptedMessage, Interceptor } from '../../../src/public.js';
import { answer, type Case, type Ends, record } from './case.js';

/** Calls `interceptor` with messages to `address` alone. */
function only(address: string, interceptor: Interceptor): Interceptor {
  return (message) => (message.address === address ? interceptor(message) : undefined);
}

const change = ({ body }: InterceptedMessage) => ({ body: `${String(body)}!` });

/** Adds an interceptor of received messages at the end with the consumers. */
async function inbound({ there, address }: Ends, interceptor: Interceptor): Promise<void> {
  await there(({ bus, kept }) => {
    const filter: Interceptor = (message) =>
      message.address === address ? interceptor(message) : undefined;
    kept.set('inbound', bus.intercept({ inbound: filter }));
  });
}

const through = (name: string, call: 'send' | 'publish', isBoth: boolean): Case => ({
  name,
  expects: 'interceptors may change each message',
  run: async (ends) => {
    const { bus, address, there, noted } = ends;
    await there(record(address));
    using _ = bus.intercept({ outbound: only(address, change) });
    if (isBoth) await inbound(ends, ({ body }) => ({ body: `${String(body)}?` }));
    bus[call](address, 'a');
    bus[call](address, 'b');
    assert.deepEqual(await noted(2), isBoth ? ['a!?', 'b!?'] : ['a!', 'b!']);
  },
});

const stopped = (name: string, direction: 'outbound' | 'inbound', differs?: string): Case => ({
  name,
  expects: 'a message that an interceptor stops goes no further, and a request fails',
  ...(differs === undefined ? {} : { differs }),
  run: async (ends) => {
    const { bus, address, there, notes } = ends;
    await there(record(address));
    if (direction === 'inbound') await inbound(ends, () => false);
    using _ = bus.intercept(
      direction === 'inbound' ? {} : { outbound: only(address, () => false) },
    );
    bus.send(address, 'any');
    await assert.rejects(bus.request(address, 'any'), { code: 'BUS_INTERCEPTED' });
    assert.deepEqual(notes, []);
  },
});

const failsWithCode =
  'An interceptor returns false, and a request rejects with `BUS_INTERCEPTED`; it chooses no failure code.';

const onlyInContext = (name: string): Case => ({
  name,
  expects: 'an interceptor runs in the context of its handler',
  differs:
    'Interceptors, handlers and replies of a loop run in its one thread; there are no contexts.',
});

const noLaterNext = (name: string): Case => ({
  name,
  expects: 'an interceptor passes a message on later, from another thread',
  differs: 'Interceptors are synchronous: a message goes on when they return.',
});

const thrownOut = (name: string): Case => ({
  name,
  expects:
    'an exception of an interceptor is reported, and the message goes on if it was passed on',
  differs: 'An exception of an interceptor is thrown to the sender, and the message is not sent.',
  run: async ({ bus, address, there, notes }) => {
    await there(record(address));
    const fail = (): never => {
      throw new Error('foo');
    };
    using _ = bus.intercept({ outbound: only(address, fail) });
    assert.throws(() => bus.send(address, 'any'), { message: 'foo' });
    await there(() => {});
    assert.deepEqual(notes, []);
  },
});

export const interceptorCases: readonly Case[] = [
  through('testOutboundInterceptorOnSend', 'send', false),
  through('testInterceptorsOnSend', 'send', true),
  through('testOutboundInterceptorOnPublish', 'publish', false),
  through('testInterceptorsOnPublish', 'publish', true),
  stopped('testOutboundInterceptorNoNext', 'outbound'),
  stopped('testInboundInterceptorNoNext', 'inbound'),
  {
    name: 'testMultipleOutboundInterceptors',
    expects: 'several interceptors see a message in the order of their registration',
    run: async ({ bus, address, there, noted }) => {
      await there(record(address));
      const marks = ['1', '2', '3'];
      const added = marks.map((mark) =>
        bus.intercept({
          outbound: only(address, ({ body }) => ({ body: `${String(body)}${mark}` })),
        }),
      );
      bus.send(address, 'a');
      assert.deepEqual(await noted(1), ['a123']);
      for (const each of added) each.close();
    },
  },
  {
    name: 'testRemoveInterceptor',
    expects: 'interceptors that were removed see nothing more',
    run: async ({ bus, address, there, noted }) => {
      await there(record(address));
      const added = [0, 1].map(() => bus.intercept({ outbound: only(address, change) }));
      bus.send(address, 'a');
      added[0]?.close();
      bus.send(address, 'b');
      added[1]?.close();
      bus.send(address, 'c');
      assert.deepEqual(await noted(3), ['a!!', 'b!', 'c']);
    },
  },
  {
    name: 'testOutboundInterceptorOnReply',
    expects: 'an interceptor of what is sent sees replies',
    differs: 'Replies have directions of their own: `outboundReply` and `inboundReply`.',
    run: async ({ bus, address, there }) => {
      await there(answer(address, 'reply'));
      await there(({ bus: other, kept }) => {
        const outboundReply: Interceptor = (message) =>
          message.address === address ? { body: 'changed' } : undefined;
        kept.set('reply', other.intercept({ outboundReply }));
      });
      assert.equal((await bus.request(address, 'any')).body, 'changed');
    },
  },
  {
    name: 'testInboundInterceptorOnReply',
    expects: 'an interceptor of what arrives sees replies',
    differs: 'Replies have directions of their own: `outboundReply` and `inboundReply`.',
    run: async ({ bus, address, there }) => {
      await there(answer(address, 'reply'));
      using _ = bus.intercept({ inboundReply: only(address, change) });
      assert.equal((await bus.request(address, 'any')).body, 'reply!');
    },
  },
  thrownOut('testExceptionInOutboundInterceptor'),
  thrownOut('testOutboundInterceptorFromNonVertxThreadFailure'),
  {
    name: 'testExceptionInInboundInterceptor',
    expects:
      'an exception of an interceptor is reported, and the message goes on if it was passed on',
    differs: 'An exception of an interceptor counts as one of the handler, which is not called.',
    run: async (ends) => {
      const { bus, address, there, notes } = ends;
      await there(record(address));
      await inbound(ends, () => {
        throw new Error('foo');
      });
      await assert.rejects(bus.request(address, 'any'), { code: 'BUS_HANDLER_ERROR' });
      assert.deepEqual(notes, []);
    },
  },
  {
    name: 'testOutboundInterceptorFromNonVertxThreadDispatch',
    expects: 'an interceptor of sent messages runs in the call that sends',
    run: async ({ bus, address }) => {
      const seen: unknown[] = [];
      using _ = bus.intercept({ outbound: only(address, ({ body }) => void seen.push(body)) });
      bus.send(address, 'armadillo');
      assert.deepEqual(seen, ['armadillo']);
    },
  },
  onlyInContext('testInboundInterceptorContextOnSend'),
  onlyInContext('testInboundInterceptorContextOnReply'),
  onlyInContext('testInboundInterceptorContextOnReplyFailure'),
  noLaterNext('testInboundInterceptorFromNonVertxThreadDispatch'),
  noLaterNext('testInboundInterceptorFromNonVertxThreadFailure'),
  stopped('testOutboundReplySendFailure', 'outbound', failsWithCode),
  stopped('testOutboundReplyRequestFailure', 'outbound', failsWithCode),
  stopped('testInboundReplySendFailure', 'inbound', failsWithCode),
  stopped('testInboundReplyRequestFailure', 'inbound', failsWithCode),
];
