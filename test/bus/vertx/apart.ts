// Vert.x's cases whose ends are apart: what is local, and who leaves (ClusteredEventBusTest and its base).

import assert from 'node:assert/strict';
import { waitFor } from '../../support/index.js';
import { answer, type Case, type Ends, record } from './case.js';

/** Registers a consumer at the sending end, which notes to `got`. */
function here({ bus, address }: Ends, got: unknown[], isLocal: boolean): Disposable {
  return bus.consumer(address, ({ body }) => got.push(body), { isLocal });
}

const localOnly = (name: string, call: 'send' | 'publish'): Case => ({
  name,
  expects: 'messages that are for this loop alone reach no other one',
  least: 'two processes',
  run: async (ends) => {
    const { bus, address, there, notes } = ends;
    await there(record(address));
    const got: unknown[] = [];
    using _ = here(ends, got, true);
    for (let at = 0; at < 30; at += 1) bus[call](address, at, { local: 'only' });
    await waitFor(() => got.length === 30);
    await there(() => {});
    assert.deepEqual(notes, []);
  },
});

const unheard = (name: string, call: 'send' | 'publish'): Case => ({
  name,
  expects: 'a local consumer never gets messages from elsewhere, and another one all of them',
  least: 'two processes',
  run: async ({ bus, address, there, noted }) => {
    await there(({ bus: other, note }) => {
      other.consumer(address, () => note('local'), { isLocal: true });
      other.consumer(address, () => note('any'));
      other.consumer(address, () => note('local'), { isLocal: true });
    });
    for (let at = 0; at < 10; at += 1) bus[call](address, at);
    assert.deepEqual(await noted(10), new Array(10).fill('any'));
  },
});

const remote = (name: string): Case => ({
  name,
  expects: 'a consumer elsewhere gets a message',
  run: async ({ bus, address, there, noted }) => {
    await there(record(address));
    bus.send(address, 'body');
    assert.deepEqual(await noted(1), ['body']);
  },
});

const spi = 'Programs cannot replace the parts that a cluster is made of.';

export const apartCases: readonly Case[] = [
  remote('testRegisterRemote1'),
  remote('testRegisterRemote2'),
  {
    name: 'testLocalHandlerNotVisibleRemotely',
    expects: 'a local consumer is not reached from elsewhere',
    least: 'two processes',
    run: async ({ bus, address, there, notes }) => {
      await there(({ bus: other, note }) => {
        other.consumer(address, ({ body }) => note(body), { isLocal: true });
      });
      bus.send(address, 'foo');
      bus.publish(address, 'foo');
      await there(() => {});
      await assert.rejects(bus.request(address, 'foo'), { code: 'BUS_NO_HANDLERS' });
      assert.deepEqual(notes, []);
    },
  },
  {
    name: 'testLocalHandlerClusteredSend',
    expects: 'a local consumer and one elsewhere get messages by turns',
    least: 'two processes',
    run: async (ends) => {
      const { bus, address, there, noted } = ends;
      await there(record(address));
      const got: unknown[] = [];
      using _ = here(ends, got, true);
      bus.send(address, 'foo');
      bus.send(address, 'foo');
      assert.deepEqual(await noted(1), ['foo']);
      assert.deepEqual(got, ['foo']);
    },
    overNats:
      "A local consumer of the sender's loop gets them all: only the servers count the other ones.",
    runOverNats: async (ends) => {
      const { bus, address, there, notes } = ends;
      await there(record(address));
      const got: unknown[] = [];
      using _ = here(ends, got, true);
      bus.send(address, 'foo');
      bus.send(address, 'foo');
      await waitFor(() => got.length === 2);
      await there(() => {});
      assert.deepEqual(notes, []);
    },
  },
  {
    name: 'testLocalHandlerClusteredPublish',
    expects: 'a local consumer and one elsewhere get each publication',
    least: 'two processes',
    run: async (ends) => {
      const { bus, address, there, noted } = ends;
      await there(record(address));
      const got: unknown[] = [];
      using _ = here(ends, got, true);
      bus.publish(address, 'foo');
      assert.deepEqual(await noted(1), ['foo']);
      assert.deepEqual(got, ['foo']);
    },
  },
  localOnly('testSendLocalOnly', 'send'),
  localOnly('testPublishLocalOnly', 'publish'),
  {
    name: 'testLocalOnlyDoesNotApplyToReplies',
    expects: 'a reply reaches its requester, wherever that is',
    run: async ({ bus, address, there }) => {
      await there(answer(address, 'pong'));
      assert.equal((await bus.request(address, 'ping')).body, 'pong');
    },
  },
  unheard('testLocalConsumerNeverGetsMessagePublishedFromRemote', 'publish'),
  unheard('testLocalConsumerNeverGetsMessageSentFromRemote', 'send'),
  {
    name: 'testSubsRemovedForClosedNode',
    expects: 'the consumers of a program that has left get nothing',
    least: 'two programs',
    run: async ({ bus, address, there, noted, join }) => {
      const third = await join();
      third.bus.consumer(address, answered);
      await waitFor(async () => (await bus.request(address, 'who')).body === 'third');
      await third.cluster.close();
      await there(record(address));
      const sent = Array.from({ length: 10 }, (_, at) => `foo${at}`);
      for (const each of sent) bus.send(address, each);
      assert.deepEqual(await noted(10), sent);
    },
  },
  {
    name: 'testSubsRemovedForKilledNode',
    expects: 'the consumers of a program that was killed get nothing',
    shownBy: [
      'cluster/local/programs.slow.test.ts',
      'a killed program is lost at once, a stopped one when its messages are full',
    ],
  },
  {
    name: 'testSocketCleanup',
    expects: 'a program that has left holds no connection',
    shownBy: [
      'cluster/local/local.test.ts',
      'each program has the others as nodes, until they leave, and no socket stays',
    ],
  },
  {
    name: 'testFaultTolerance',
    expects: 'a program that was killed and started again is reached again',
    shownBy: [
      'cluster/local/programs.slow.test.ts',
      'loops join the bus of their program, and a moving unit loses no message of another one',
    ],
  },
  {
    name: 'testClusteredPong',
    expects: 'a connection between programs outlives a pause longer than its ping interval',
    absent: 'A local bus pings nobody, and the client of NATS answers the pings of its server.',
  },
  {
    name: 'testWriteHandlerConnectFailure',
    expects: 'a write fails when programs cannot connect to each other by TLS',
    absent: 'Programs connect to their server, or to a local socket, and not by TLS to each other.',
  },
  ...[
    'testSelectorWantsUpdates',
    'testSelectorDoesNotWantUpdates',
    'testHandleCloseRemovesStaleOutboundConnectionOnConnectFailure',
  ].map((name) => ({ name, expects: 'calls of a replaced cluster manager', absent: spi })),
];

function answered(message: { reply: (body: unknown) => void }): void {
  message.reply('third');
}
