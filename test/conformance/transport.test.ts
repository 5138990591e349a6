// Transports of one machine against their contract; NATS: test/cluster/bus/transport.slow.test.ts.

import type { TestContext } from 'node:test';
import { createCopy, EventBus } from '../../src/bus/index.js';
import { BusLink } from '../../src/bus/transports/link.js';
import { acceptChannel, type ChannelKind, offerChannel } from '../../src/channels/index.js';
import { nativeBinding } from '../../src/native.js';
import { type Connected, testTransport } from './transport.js';

function openBus(t: TestContext): EventBus {
  const bus = new EventBus({ copy: createCopy() });
  t.after(() => bus.close());
  return bus;
}

testTransport({
  name: 'local',
  open: (t) => {
    const bus = openBus(t);
    return { sender: bus, receiver: bus };
  },
});

for (const kind of ['memory', 'shm'] as const) {
  testTransport({
    name: `link over ${kind}`,
    skip: kind === 'shm' && nativeBinding() === undefined && 'needs the native binary',
    lostCode: 'BUS_CONSUMER_LOST',
    open: (t) => openLinked(t, kind),
  });
}

function openLinked(t: TestContext, kind: ChannelKind): Connected {
  const [sender, receiver] = [openBus(t), openBus(t)];
  const offer = offerChannel(kind, { worker: 'thread', spin: false });
  const end = offer.open(undefined);
  const here = new BusLink(sender, end);
  const there = new BusLink(receiver, acceptChannel(offer.ticket));
  for (const link of [here, there]) link.ref();
  t.after(async () => {
    there.close();
    await here.closed;
    here.close();
    end.peerExited?.();
  });
  return { sender, receiver, end: () => there.close() };
}
