// Consumers that move from bus to bus while others send to them, over paths that are each slow in their own
// way: nothing is lost, nothing comes twice, and messages of one sender stay in order.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type Bus,
  type BusMessage,
  type Consumer,
  type EventBus,
  Scope,
} from '../../src/bus/index.js';
import { random, waitFor } from '../support/index.js';
import { byOf, Net, type Numbered, turns, upTo } from './net.js';

type Registrar = Pick<Bus, 'consumer'>;

/** A consumer that migrates from bus to bus. */
class MigratingConsumer {
  at: number;
  readonly #net: Net;
  readonly #make: (bus: Registrar, at: number) => Consumer;
  #consumer: Consumer;

  constructor(net: Net, at: number, make: (bus: Registrar, at: number) => Consumer) {
    this.#net = net;
    this.#make = make;
    this.at = at;
    this.#consumer = make(this.#bus(at), at);
  }

  #bus(at: number): EventBus {
    const bus = this.#net.buses[at];
    assert.ok(bus);
    return bus;
  }

  hold(): void {
    this.#consumer.hold();
  }

  /** Resolves when the target alone has it. */
  async move(to: number): Promise<void> {
    const opened = this.begin(to);
    await opened;
  }

  begin(to: number): Promise<void> {
    const [old, successorBus] = [this.#bus(this.at), this.#bus(to)];
    const consumer = this.#consumer;
    const scope = new Scope(successorBus, { isIncoming: true });
    const successor = this.#make(scope.bus, to);
    const own = new Set([successor]);
    const [offered] = successorBus.parts.handOffs.successorsAmong(own);
    assert.ok(offered);
    successorBus.parts.handOffs.expect(own, old.parts.handOffs.name);
    const route = { to: successorBus.parts.handOffs.name, token: offered.token };
    assert.equal(old.parts.handOffs.handOff(consumer, false, route), true);
    this.at = to;
    this.#consumer = successor;
    return successorBus.parts.handOffs.arrived(own);
  }
}

for (const how of ['send', 'publish', 'request'] as const) {
  test(`${how}: a consumer that migrates gets everything once and in order`, async (t) => {
    const chance = random(t);
    const net = new Net(t, () => chance.integer(0, 4));
    await net.addAll(4);
    const seen: Numbered[] = [];
    const migrating = new MigratingConsumer(net, 0, (bus) =>
      bus.consumer<Numbered>('here', (message) => {
        seen.push(message.body);
        message.reply(message.body.number);
      }),
    );
    await waitFor(() => net.buses[3]?.request('here', { by: 'probe', number: 0 }));
    seen.length = 0;
    let isOver = false;
    t.after(() => {
      isOver = true;
    });
    const counts: number[] = [];
    const failures: unknown[] = [];
    const senders = net.buses.map(async (bus, at) => {
      const answers: Promise<unknown>[] = [];
      let number = 0;
      while (!isOver) {
        for (let more = chance.integer(0, 3); more > 0; more -= 1) {
          const body = { by: String(at), number };
          number += 1;
          if (how !== 'request') bus[how]('here', body);
          else answers.push(bus.request('here', body).catch((error) => failures.push(error)));
        }
        await turns(chance.integer(0, 2));
      }
      counts[at] = number;
      await Promise.all(answers);
    });
    for (let move = 0; move < 30; move += 1) {
      const others = upTo(4).filter((at) => at !== migrating.at);
      migrating.hold();
      await turns(chance.integer(0, 5));
      await migrating.move(chance.pick(others));
      await turns(chance.integer(0, 5));
    }
    isOver = true;
    await Promise.all(senders);
    const sent = (): number => counts.reduce((sum, count) => sum + count, 0);
    await waitFor(() => seen.length >= sent());
    await turns(20);
    assert.deepEqual(failures, []);
    const found = byOf(seen);
    for (const [at, count] of counts.entries()) {
      assert.ok(count > 0);
      assert.deepEqual(found.get(String(at)), upTo(count));
    }
  });
}

test('beside others of its address, nothing is lost or comes twice', async (t) => {
  const chance = random(t);
  const net = new Net(t, () => chance.integer(0, 4));
  await net.addAll(3);
  const seen = new Map<string, Numbered[]>();
  const make =
    (name: string) =>
    (bus: Registrar): Consumer => {
      const own = seen.get(name) ?? [];
      seen.set(name, own);
      return bus.consumer<Numbered>('all', (message) => void own.push(message.body));
    };
  const all = ['a', 'b', 'c'].map((name, at) => new MigratingConsumer(net, at % 2, make(name)));
  make('fixed')(net.buses[1] ?? assert.fail());
  let isReady = false;
  while (!isReady) {
    for (const each of seen.values()) each.length = 0;
    for (const bus of net.buses) bus.publish('all', { by: 'probe', number: 0 });
    await turns(60);
    isReady = [...seen.values()].every((each) => each.length === 3);
  }
  for (const each of seen.values()) each.length = 0;
  let isOver = false;
  t.after(() => {
    isOver = true;
  });
  const published: number[] = [];
  const sent: number[] = [];
  const senders = net.buses.map(async (bus, at) => {
    published[at] = 0;
    sent[at] = 0;
    while (!isOver) {
      const isPublished = chance.integer(0, 2) === 0;
      const counts = isPublished ? published : sent;
      const body = { by: `${isPublished ? 'publish' : 'send'} ${at}`, number: counts[at] ?? 0 };
      counts[at] = body.number + 1;
      bus[isPublished ? 'publish' : 'send']('all', body);
      await turns(chance.integer(0, 2));
    }
  });
  for (let move = 0; move < 30; move += 1) {
    const migrating = chance.pick(all);
    const others = upTo(3).filter((at) => at !== migrating.at);
    migrating.hold();
    await turns(chance.integer(0, 5));
    await migrating.move(chance.pick(others));
  }
  isOver = true;
  await Promise.all(senders);
  await turns(200);
  for (const [at, count] of published.entries()) {
    for (const [name, own] of seen) {
      assert.deepEqual(byOf(own).get(`publish ${at}`), upTo(count), `what ${name} got of ${at}`);
    }
  }
  for (const [at, count] of sent.entries()) {
    const numbers = [...seen.values()].map((own) => byOf(own).get(`send ${at}`) ?? []);
    for (const own of numbers)
      assert.deepEqual(
        own,
        [...own].sort((a, b) => a - b),
      );
    assert.deepEqual(
      numbers.flat().sort((a, b) => a - b),
      upTo(count),
    );
  }
});

test('a sender that does not read delays no other', async (t) => {
  const net = new Net(t, () => 0);
  await net.addAll(3);
  const [, , sender] = net.buses;
  const seen: string[] = [];
  const migrating = new MigratingConsumer(net, 0, (bus, at) =>
    bus.consumer<string>('here', (message) => {
      seen.push(message.body);
      message.reply(at === 1 ? 'new' : 'old');
    }),
  );
  await waitFor(() => sender?.request('here', 'probe'));
  for (const from of [0, 1]) net.path(from, 2).isStopped = true;
  const opened = migrating.begin(1);
  assert.equal((await net.buses[0]?.request('here', 'from the source'))?.body, 'new');
  assert.equal((await net.buses[1]?.request('here', 'from the new one'))?.body, 'new');
  const late = sender?.request('here', 'late');
  await turns(20);
  assert.equal(seen.at(-1), 'late', 'it came by way of the source');
  const after = sender?.request('here', 'later');
  for (const from of [0, 1]) net.path(from, 2).isStopped = false;
  assert.deepEqual([(await late)?.body, (await after)?.body], ['new', 'new']);
  await opened;
});

test('a bus that comes in the middle of it finds the consumer', async (t) => {
  const net = new Net(t, () => 1);
  await net.addAll(3);
  const migrating = new MigratingConsumer(net, 0, (bus, at) =>
    bus.consumer('here', (message: BusMessage) => message.reply(at)),
  );
  await waitFor(() => net.buses[2]?.request('here', 0));
  net.path(0, 2).isStopped = true; // the request to switch does not arrive
  const opened = migrating.begin(1);
  const late = net.add();
  await turns(20);
  for (let at = 0; at < 20; at += 1) assert.equal((await late.request('here', at)).body, 1);
  net.path(0, 2).isStopped = false;
  await opened;
  assert.equal((await late.request('here', 0)).body, 1);
});

test('when the target is lost its waiting messages go to others, or are refused', async (t) => {
  const net = new Net(t, () => 1);
  await net.addAll(3);
  const migrating = new MigratingConsumer(net, 0, (bus) =>
    bus.consumer('here', (m) => m.reply('there')),
  );
  await waitFor(() => net.buses[2]?.request('here', 0));
  net.path(0, 2).isStopped = true;
  const opened = migrating.begin(1);
  const waiting = net.buses[2]?.request('here', 1);
  net.kill(1);
  net.path(0, 2).isStopped = false;
  await assert.rejects(waiting ?? Promise.resolve(), /no consumers|gone/);
  await waitFor(() =>
    net.buses[2]?.request('here', 2).then(
      () => false,
      (error) => error.code === 'BUS_NO_HANDLERS',
    ),
  );
  void opened;
});

test('when the source is lost the target has the consumer alone, in order', async (t) => {
  const net = new Net(t, () => 1);
  await net.addAll(3);
  const seen: unknown[] = [];
  const migrating = new MigratingConsumer(net, 0, (bus) =>
    bus.consumer('here', (m) => {
      seen.push(m.body);
      m.reply('there');
    }),
  );
  await waitFor(() => net.buses[2]?.request('here', -1));
  seen.length = 0;
  net.path(2, 0).isStopped = true; // it is notified of the move, and its notices to the source do not arrive
  const opened = migrating.begin(1);
  await turns(30);
  const answers = upTo(5).map((number) => net.buses[2]?.request('here', number));
  await turns(10);
  assert.deepEqual(seen, [], 'straight messages wait for those that may come by the source');
  net.kill(0);
  await opened;
  await Promise.all(answers);
  assert.deepEqual(seen, upTo(5));
});

test('headers of several values arrive at a successor', async (t) => {
  const net = new Net(t, () => 2);
  await net.addAll(3);
  const seen: unknown[] = [];
  const moving = new MigratingConsumer(net, 0, (bus) =>
    bus.consumer('here', ({ headersDistinct }) => void seen.push(headersDistinct)),
  );
  const sender = net.buses[2];
  assert.ok(sender);
  await turns(30);
  moving.hold();
  const headers = { several: ['a', 'b'] };
  sender.send('here', 1, { headers });
  await turns(30);
  const opened = moving.begin(1);
  sender.send('here', 2, { headers });
  await opened;
  await waitFor(() => seen.length === 2);
  assert.deepEqual(seen, [headers, headers]);
});

test('an iteration ends at the source and goes on at the successor, without a loss', async (t) => {
  const net = new Net(t, () => 2);
  await net.addAll(3);
  const seen: [at: number, body: unknown][] = [];
  const loops: Promise<void>[] = [];
  const moving = new MigratingConsumer(net, 0, (bus, at) => {
    const consumer = bus.consumer('here');
    const loop = async (): Promise<void> => {
      for await (const { body } of consumer) seen.push([at, body]);
    };
    loops.push(loop());
    return consumer;
  });
  const sender = net.buses[2];
  assert.ok(sender);
  await turns(30);
  sender.send('here', 1);
  await waitFor(() => seen.length === 1);
  moving.hold();
  sender.send('here', 2);
  const opened = moving.begin(1);
  sender.send('here', 3);
  await opened;
  await loops[0];
  await waitFor(() => seen.length === 3);
  assert.deepEqual(seen, [
    [0, 1],
    [1, 2],
    [1, 3],
  ]);
});
