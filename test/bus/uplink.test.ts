// Units that move from loop to loop while others send to them by an uplink, over paths that are each slow in
// their own way: each publication arrives once. And consumers that are on no uplink.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type Bus, EventBus, Scope } from '../../src/bus/index.js';
import type { AttachedUplink, Uplink } from '../../src/bus/transports/transport.js';
import { type Random, random, waitFor } from '../support/index.js';
import { byOf, Net, type Numbered, SlowPath, turns, upTo } from './net.js';

interface Client {
  readonly name: string;
  readonly counts: Map<string, number>;
  readonly down: SlowPath;
  readonly attached: () => AttachedUplink;
}

/** A model of a NATS server: has the subscriptions that have arrived; takes one message after the other. */
class Server {
  readonly #clients: Client[] = [];
  readonly #chance: Random;

  constructor(chance: Random) {
    this.#chance = chance;
  }

  /** `isSlow`: messages to this bus take much longer than elsewhere. */
  join(bus: EventBus, { isSlow = false } = {}): void {
    const name = `client ${this.#clients.length}`;
    const up = new SlowPath(() => this.#chance.integer(0, 4));
    const down = new SlowPath(() => this.#chance.integer(0, isSlow ? 40 : 4));
    const counts = new Map<string, number>();
    let number = 0;
    const catchUp = (): Promise<void> =>
      new Promise((resolve) => up.push(() => down.push(resolve)));
    const uplink: Uplink = {
      hasRoom: true,
      announce: (address, consumers) => up.push(() => counts.set(address, consumers)),
      deliver: (delivery) => {
        number += 1;
        const origin = { sender: name, number };
        up.push(() => this.#route({ ...delivery, origin }));
      },
      check: () => {},
      watch: () => () => {},
      advertise: () => () => {},
      flush: catchUp,
      catchUp,
    };
    const attached: AttachedUplink = bus.attachUplink(uplink, undefined);
    this.#clients.push({ name, counts, down, attached: () => attached });
  }

  #route(delivery: Parameters<AttachedUplink['receive']>[0]): void {
    const { address, isPublished, body } = delivery;
    const members = this.#clients.flatMap((each) =>
      Array.from({ length: each.counts.get(address) ?? 0 }, () => each),
    );
    const to = isPublished
      ? new Set(members)
      : members.length === 0
        ? []
        : [this.#chance.pick(members)];
    for (const { down, attached } of to) {
      down.push(() => attached().receive({ ...delivery, body: structuredClone(body) }));
    }
  }
}

/** Moves from loop to loop with its consumers, as `deployment.move` does it. */
class Unit {
  at = 0;
  #scope: Scope;
  readonly #net: Net;
  readonly #register: (bus: Bus) => void;

  constructor(net: Net, register: (bus: Bus) => void) {
    this.#net = net;
    this.#register = register;
    this.#scope = new Scope(this.#home(0));
    register(this.#scope.bus);
  }

  #home(at: number): EventBus {
    return this.#net.buses[at] ?? assert.fail();
  }

  /** `isGivenUp`: it stays after all, when the target awaits it. */
  async move(to: number, { isGivenUp = false } = {}): Promise<void> {
    const successor = new Scope(this.#home(to), { isIncoming: true });
    this.#register(successor.bus);
    await this.#scope.hold();
    const target = await successor.acceptHandOff(this.#scope.busName);
    if (isGivenUp) {
      this.#scope.release();
      await successor.end();
      return;
    }
    assert.equal(this.#scope.handOff(target), true);
    await this.#scope.end();
    this.#scope = successor;
    this.at = to;
  }
}

async function openNet(t: TestContext, chance: Random, isSlow = false) {
  const net = new Net(t, () => chance.integer(0, 4));
  await net.addAll(3);
  const server = new Server(chance);
  for (const [at, bus] of net.buses.entries()) server.join(bus, { isSlow: isSlow && at === 1 });
  const far = new EventBus({ copy: structuredClone });
  t.after(() => far.close());
  server.join(far);
  return { net, senders: [...net.buses, far] };
}

for (const { title, isSlow, hasOthers } of [
  { title: 'alone', isSlow: false, hasOthers: false },
  { title: 'beside others of the address', isSlow: false, hasOthers: true },
  { title: 'to a loop that reads late', isSlow: true, hasOthers: true },
]) {
  test(`${title}: a unit that migrates gets each publication once`, async (t) => {
    const chance = random(t);
    const { net, senders } = await openNet(t, chance, isSlow);
    const [seen, others]: [Numbered[], Numbered[]] = [[], []];
    const unit = new Unit(net, (bus) => {
      bus.consumer<Numbered>('news', ({ body }) => seen.push(body));
    });
    if (hasOthers) net.buses[1]?.consumer<Numbered>('news', ({ body }) => others.push(body));
    await net.buses[0]?.drained();
    await net.buses[1]?.drained();
    let isOver = false;
    t.after(() => {
      isOver = true;
    });
    const counts: number[] = [];
    const publishing = senders.map(async (bus, at) => {
      for (counts[at] = 0; !isOver; await turns(chance.integer(0, 3))) {
        bus.publish('news', { by: String(at), number: counts[at] ?? 0 });
        counts[at] = (counts[at] ?? 0) + 1;
      }
    });
    for (let move = 0; move < 30; move += 1) {
      const isGivenUp = chance.integer(0, 4) === 0;
      await unit.move(chance.pick(upTo(3).filter((at) => at !== unit.at)), { isGivenUp });
      await turns(chance.integer(0, 5));
    }
    isOver = true;
    await Promise.all(publishing);
    const all = counts.reduce((sum, count) => sum + count, 0);
    await waitFor(() => seen.length >= all && (!hasOthers || others.length >= all));
    await turns(200);
    for (const each of hasOthers ? [seen, others] : [seen]) {
      for (const [by, numbers] of byOf(each)) {
        assert.deepEqual(
          numbers.sort((a, b) => a - b),
          upTo(counts[Number(by)] ?? 0),
          `of ${by}`,
        );
      }
    }
  });
}

test('a local consumer takes turns with the others of its program', async (t) => {
  const { net } = await openNet(t, random(t));
  const [own, other] = net.buses;
  assert.ok(own && other);
  const addresses = ['one', 'two'];
  const counts = new Map<string, number>();
  const count = (who: string) => (): void => void counts.set(who, (counts.get(who) ?? 0) + 1);
  for (const address of addresses) {
    own.consumer(address, count(`${address}: local`), { isLocal: true });
    own.consumer(address, count(`${address}: others`));
    other.consumer(address, count(`${address}: others`));
  }
  await own.drained();
  await other.drained();
  await turns(30); // so that announcements over the paths between them arrive
  for (let sent = 0; sent < 90; sent += 1) for (const each of addresses) own.send(each, sent);
  await waitFor(() => [...counts.values()].reduce((sum, each) => sum + each, 0) === 180);
  for (const each of addresses) {
    assert.deepEqual([counts.get(`${each}: local`), counts.get(`${each}: others`)], [30, 60]);
  }
});

test('where the program has no other consumer, a local one gets everything', async (t) => {
  const { net } = await openNet(t, random(t));
  const [own, other] = net.buses;
  assert.ok(own && other);
  let count = 0;
  const closes = own.consumer('one', (message) => message.reply('the other'));
  own.consumer(
    'one',
    () => {
      count += 1;
    },
    { isLocal: true },
  );
  own.send('one', 0);
  own.send('one', 0);
  await waitFor(() => count === 1);
  closes.close();
  for (let sent = 0; sent < 10; sent += 1) own.send('one', sent);
  await waitFor(() => count === 11);
});
