// Buses that are each other's peers, over a path of this test that keeps the order and takes its time.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { type BusMessage, EventBus } from '../../src/bus/index.js';
import type { Attached, Peer } from '../../src/bus/transports/transport.js';
import { CodedError } from '../../src/errors.js';
import { waitFor } from '../support/index.js';

/** Calls pushed functions in order, each in a turn of its own. */
class Path {
  readonly #works: (() => void)[] = [];
  #isScheduled = false;
  isEnded = false;

  push(work: () => void): void {
    this.#works.push(work);
    this.#schedule();
  }

  #schedule(): void {
    if (this.isEnded || this.#isScheduled || this.#works.length === 0) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      if (this.isEnded) return;
      this.#works.shift()?.();
      this.#schedule();
    });
  }
}

/** The peer whose other end is `attached()`. */
function peerOver(path: Path, attached: () => Attached): Peer {
  return {
    hasRoom: true,
    announce: (address, consumers) => path.push(() => attached().interest(address, consumers)),
    note: (note) => path.push(() => attached().noted(note)),
    deliver: (delivery) => {
      const body = structuredClone(delivery.body);
      path.push(() => attached().receive({ ...delivery, body }));
    },
  };
}

/** Returns a function that ends the connection. */
function join(a: EventBus, b: EventBus): () => void {
  const paths = [new Path(), new Path()] as const;
  const atA: Attached = a.attach(peerOver(paths[0], () => atB));
  const atB: Attached = b.attach(peerOver(paths[1], () => atA));
  return () => {
    for (const path of paths) path.isEnded = true;
    atA.ended();
    atB.ended();
  };
}

/** Opens `count` buses, each the peer of all others; they end with the test. */
function openBuses(t: TestContext, count: number): EventBus[] {
  const buses = Array.from({ length: count }, () => new EventBus({ copy: structuredClone }));
  for (const [at, bus] of buses.entries()) {
    for (const other of buses.slice(0, at)) join(other, bus);
    t.after(() => bus.close());
  }
  return buses;
}

let probes = 0;
/** Waits until `to` has the announcements that `by` has sent so far. */
async function announced(by: EventBus, to: EventBus): Promise<void> {
  probes += 1;
  const address = `probe ${probes}`;
  const probe = by.consumer(address, (message) => message.reply('here'));
  await waitFor(() => to.request(address, 'are you there?'));
  probe.close();
}

test('a request finds its consumer wherever that is, and the answer comes back', async (t) => {
  const [a, b, c] = openBuses(t, 3);
  assert.ok(a && b && c);
  c.consumer<number>('double', async (message) => {
    const thanks = await message.replyAndRequest(2 * message.body);
    thanks.reply('you are welcome');
  });
  await announced(c, a);
  const answer = await a.request<number>('double', 21);
  assert.equal(answer.body, 42);
  assert.equal((await answer.replyAndRequest('thanks')).body, 'you are welcome');
  await assert.rejects(b.request('halve', 1), { code: 'BUS_NO_HANDLERS' });
});

test('a consumer registered before a message was sent is there for its receiver', async (t) => {
  const [a, b] = openBuses(t, 2);
  assert.ok(a && b);
  const answers: unknown[] = [];
  b.consumer('news', async () => answers.push((await b.request('late', 'now')).body));
  await announced(b, a);
  a.consumer('late', (message) => message.reply('here'));
  a.publish('news', 'it is there');
  await waitFor(() => answers.includes('here'));
});

test('a registration is found though its channel was read just before it came', async (t) => {
  const bus = new EventBus({ copy: structuredClone });
  t.after(() => bus.close());
  const taken: unknown[] = [];
  const deliver = ({ body }: { body: unknown }): void => void taken.push(body);
  const { interest } = bus.attach({ hasRoom: true, announce: () => {}, note: () => {}, deliver });
  bus.send('late', 'the news of it came over another channel');
  bus.publish('late', 'so it did');
  // After everything that this turn does, and that `send` has put off.
  setImmediate(() => interest('late', 1));
  await waitFor(() => taken.length === 2);
  assert.equal(bus.stats.undelivered, 0);
});

test('turns follow the number of consumers, and publish reaches each one once', async (t) => {
  const [a, b] = openBuses(t, 2);
  assert.ok(a && b);
  const counts = [0, 0, 0];
  const count = (at: number) => () => {
    counts[at] = (counts[at] ?? 0) + 1;
  };
  a.consumer('here', count(0));
  b.consumer('here', count(1));
  b.consumer('here', count(2));
  await announced(b, a);
  for (let sent = 0; sent < 30; sent += 1) a.send('here', sent);
  await announced(b, a);
  assert.deepEqual(counts, [10, 10, 10]);
  a.publish('here', 'all');
  await announced(b, a);
  assert.deepEqual(counts, [11, 11, 11]);
});

test('`only` stays in the loop, and `prefer` leaves it only where it must', async (t) => {
  const [a, b] = openBuses(t, 2);
  assert.ok(a && b);
  const whose = (who: string) => (message: BusMessage) => message.reply(who);
  const here = a.consumer('who', whose('a'));
  b.consumer('who', whose('b'));
  b.consumer('b alone', whose('b'));
  a.consumer('hidden', whose('a'), { isLocal: true });
  await announced(b, a);
  await announced(a, b);
  const ask = async (bus: EventBus, address: string, local?: 'only' | 'prefer') =>
    (await bus.request(address, 1, { local })).body;
  for (let times = 0; times < 3; times += 1) {
    assert.equal(await ask(a, 'who', 'prefer'), 'a');
    assert.equal(await ask(a, 'who', 'only'), 'a');
  }
  assert.deepEqual(new Set([await ask(a, 'who'), await ask(a, 'who')]), new Set(['a', 'b']));
  assert.equal(await ask(a, 'b alone', 'prefer'), 'b');
  await assert.rejects(ask(a, 'b alone', 'only'), { code: 'BUS_NO_HANDLERS' });
  assert.equal(await ask(a, 'hidden'), 'a');
  await assert.rejects(ask(b, 'hidden'), { code: 'BUS_NO_HANDLERS' });
  here.close();
  assert.equal(await ask(a, 'who', 'prefer'), 'b');
  const got: unknown[] = [];
  b.consumer('news', ({ body }) => void got.push(body));
  await announced(b, a);
  a.publish('news', 'ours', { local: 'only' });
  a.publish('news', 'all');
  await announced(b, a);
  assert.deepEqual(got, ['all']);
});

test('messages of one sender to one consumer keep their order over a peer', async (t) => {
  const [a, b] = openBuses(t, 2);
  assert.ok(a && b);
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.constantFrom('send', 'publish'), { minLength: 1, maxLength: 30 }),
      async (steps) => {
        const got: unknown[] = [];
        const consumer = b.consumer('ordered', ({ body }) => void got.push(body));
        await announced(b, a);
        for (const [index, step] of steps.entries()) a[step]('ordered', index);
        await announced(b, a);
        assert.deepEqual(got, [...steps.keys()]);
        consumer.close();
        await announced(b, a);
      },
    ),
    { numRuns: 20 },
  );
});

test('messages sent while a registration is on its way arrive, in order', async (t) => {
  const bus = new EventBus({ copy: structuredClone });
  t.after(() => bus.close());
  const taken: unknown[] = [];
  const peer: Peer = {
    hasRoom: true,
    announce: () => {},
    note: () => {},
    deliver: ({ body }) => void taken.push(body),
  };
  const { interest } = bus.attach(peer);
  bus.send('here', 1);
  bus.publish('here', 2);
  interest('here', 1);
  bus.send('here', 3);
  bus.publish('here', 4);
  await waitFor(() => taken.length === 4);
  assert.deepEqual(taken, [1, 2, 3, 4]);
  const here = bus.consumer('there', () => {});
  bus.send('there', 5);
  here.close();
  interest('there', 1);
  bus.send('there', 6);
  await waitFor(() => taken.length === 6);
  assert.deepEqual(taken.slice(4), [5, 6]);
});

test('a peer that cannot take something costs the others nothing', async (t) => {
  const bus = new EventBus({ copy: structuredClone });
  t.after(() => bus.close());
  const full = (): never => {
    throw new CodedError('BUS_FULL', 'no room');
  };
  const { interest } = bus.attach({
    hasRoom: true,
    announce: () => {},
    note: () => {},
    deliver: full,
  });
  const got: unknown[] = [];
  bus.consumer('here', ({ body }) => void got.push(body));
  interest('here', 1);
  bus.publish('here', 1);
  await waitFor(() => got.length === 1);
  assert.equal(bus.stats.dropped, 1);
  interest('there', 1);
  assert.throws(() => bus.send('there', 1), { code: 'BUS_FULL' });
  await assert.rejects(bus.request('there', 1), { code: 'BUS_FULL' });
  interest('there', 0);
  const later = bus.request('there', 1); // no consumer is announced yet
  interest('there', 1);
  await assert.rejects(later, { code: 'BUS_FULL' });
});

test('a peer that is gone has no consumers any more', async (t) => {
  const buses = [0, 1].map(() => new EventBus({ copy: structuredClone }));
  const [a, b] = buses;
  assert.ok(a && b);
  t.after(() => {
    for (const bus of buses) bus.close();
  });
  const end = join(a, b);
  b.consumer('there', (message) => message.reply('here'));
  await announced(b, a);
  end();
  await assert.rejects(a.request('there', 1), { code: 'BUS_NO_HANDLERS' });
});

test('a peer that gets a request after its abort is notified that nothing waits for a reply', async (t) => {
  const bus = new EventBus({ copy: structuredClone });
  t.after(() => bus.close());
  let isGivenUp: boolean | undefined;
  const { interest } = bus.attach({
    hasRoom: true,
    announce: () => {},
    note: () => {},
    deliver: ({ waiter }) => {
      isGivenUp = false;
      waiter?.whenGivenUp(() => {
        isGivenUp = true;
      });
    },
  });
  const abort = new AbortController();
  const request = bus.request('late', 1, { signal: abort.signal }); // waits here: it has no consumer
  interest('late', 1);
  abort.abort();
  await assert.rejects(request, { code: 'ABORTED' });
  await waitFor(() => isGivenUp !== undefined);
  assert.equal(isGivenUp, true);
});
