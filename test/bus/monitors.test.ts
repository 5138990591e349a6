// Monitors of addresses: one notice for each consumer that ends in the program, with its reason.

import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { type TestContext, test } from 'node:test';
import { type Bus, type ConsumerEnd, EventBus, type Found, Scope } from '../../src/bus/index.js';
import { random, waitFor } from '../support/index.js';
import { Net, turns } from './net.js';

const settled = 100;

/** Monitors an address, and collects the reasons. */
function reasonsOf(bus: Bus, address: string): string[] {
  const reasons: string[] = [];
  bus.monitor(address, (end) => {
    assert.equal(end.address, address);
    reasons.push(end.reason);
  });
  return reasons;
}

/** Buses over slow paths. */
async function netOf(t: TestContext, count: number): Promise<Net> {
  const chance = random(t);
  const net = new Net(t, () => chance.integer(0, 3));
  await net.addAll(count);
  return net;
}

function busAt(net: Net, at: number): EventBus {
  const bus = net.buses[at];
  assert.ok(bus);
  return bus;
}

test('each consumer that closes, here or at a peer, is one notice', async (t) => {
  const net = await netOf(t, 3);
  const consumers = [0, 1, 1, 2].map((at) => busAt(net, at).consumer('a', () => {}));
  busAt(net, 1).consumer('b', () => {});
  await turns(settled);
  const all = net.buses.map((bus) => reasonsOf(bus, 'a'));
  for (const each of consumers) {
    each.close();
    each.close();
  }
  await waitFor(() => all.every((reasons) => reasons.length === 4));
  await turns(settled);
  for (const reasons of all) assert.deepEqual(reasons, Array(4).fill('closed'));
});

test('consumers of a loop that is gone are lost, one notice each', async (t) => {
  const net = await netOf(t, 3);
  for (let at = 0; at < 2; at += 1) busAt(net, 1).consumer('a', () => {});
  busAt(net, 2).consumer('a', () => {});
  await turns(settled);
  const reasons = reasonsOf(busAt(net, 0), 'a');
  net.kill(1);
  await turns(settled);
  assert.deepEqual(reasons, ['lost', 'lost']);
});

test('without a consumer there is one notice, and later ones are monitored', async (t) => {
  const net = await netOf(t, 2);
  const reasons = reasonsOf(busAt(net, 0), 'a');
  await waitFor(() => reasons.length === 1);
  const consumer = busAt(net, 1).consumer('a', () => {});
  await turns(settled);
  consumer.close();
  await turns(settled);
  assert.deepEqual(reasons, ['none', 'closed']);
});

test('a consumer that moves has not ended, also when its old loop does', async (t) => {
  const net = await netOf(t, 3);
  const [old, next] = [new Scope(busAt(net, 1)), new Scope(busAt(net, 2), { isIncoming: true })];
  old.bus.consumer('a', () => {});
  await turns(settled);
  const all = net.buses.map((bus) => reasonsOf(bus, 'a'));
  next.bus.consumer('a', () => {});
  await old.hold();
  assert.equal(old.handOff(await next.acceptHandOff(old.busName)), true);
  await old.end();
  await next.arrived();
  await turns(settled);
  assert.deepEqual(all, [[], [], []]);
  net.kill(1);
  await turns(settled);
  assert.deepEqual(all[0], []);
  await next.end();
  await turns(settled);
  assert.deepEqual([all[0], all[2]], [['closed'], ['closed']]);
});

test('a monitor ends by close(), with its unit and with the bus', async (t) => {
  const net = await netOf(t, 1);
  const bus = busAt(net, 0);
  const scope = new Scope(bus);
  const reasons: ConsumerEnd[] = [];
  const note = (end: ConsumerEnd): void => void reasons.push(end);
  const consumer = bus.consumer('a', () => {});
  const monitor = bus.monitor('a', note);
  scope.bus.monitor('a', note);
  consumer.close();
  monitor.close();
  monitor.close();
  await scope.end();
  await turns(settled);
  bus.monitor('none', note);
  bus.close();
  await turns(settled);
  assert.deepEqual(reasons, []);
  assert.throws(() => scope.bus.monitor('a', note), { code: 'BUS_CLOSED' });
  assert.throws(() => bus.monitor('a', note), { code: 'BUS_CLOSED' });
});

test('an error of a listener is reported, and others get the notice', async (t) => {
  const net = await netOf(t, 1);
  const bus = busAt(net, 0);
  const failures: unknown[] = [];
  const note = (failure: unknown): void => void failures.push(failure);
  subscribe('manycore:bus:handler-failed', note);
  t.after(() => unsubscribe('manycore:bus:handler-failed', note));
  const scope = new Scope(bus, { unit: 'watcher' });
  scope.bus.monitor('a', () => {
    throw new Error('no');
  });
  scope.bus.monitor('a', () => Promise.reject(new Error('later')));
  const reasons = reasonsOf(bus, 'a');
  await waitFor(() => failures.length === 2);
  assert.deepEqual(reasons, ['none']);
  const { address, unit, error }: { address?: string; unit?: string; error?: Error } = Object(
    failures[0],
  );
  assert.deepEqual([address, unit], ['a', 'watcher']);
  assert.match(String(error), /the listener of a monitor of a threw: no/);
});

test('wrong arguments are refused by name', (t) => {
  const bus = new EventBus({ copy: structuredClone });
  t.after(() => bus.close());
  const { bus: ofUnit } = new Scope(bus);
  const wrong: readonly (readonly [target: unknown, listener: unknown, message: RegExp])[] = [
    ['', () => {}, /^target is "": it must be an address, or a deployment that deploy\(\) ret/],
    [{ id: 1 }, () => {}, /^target is an object: it must be an address, or a deployment/],
    [undefined, () => {}, /^target is undefined: it must be an address, or a deployment/],
    ['a', undefined, /^listener is undefined: it must be a function/],
    ['manycore:x', () => {}, /names that begin with "manycore:" are manycore's own/],
  ];
  for (const [target, listener, message] of wrong) {
    const call = (): unknown => Reflect.apply(ofUnit.monitor, ofUnit, [target, listener]);
    assert.throws(call, { code: 'OPTION_INVALID', message });
  }
});

/** An uplink whose watches the test ends. */
function uplinkOf(bus: EventBus) {
  const watches = new Set<(found: Found, hasAnswered: boolean) => void>();
  const attached = bus.attachUplink(
    {
      hasRoom: true,
      advertise: () => () => {},
      announce: () => {},
      deliver: () => {},
      check: () => {},
      watch: (_address, onGone) => {
        watches.add(onGone);
        return () => watches.delete(onGone);
      },
      flush: async () => {},
      catchUp: async () => {},
    },
    undefined,
  );
  const find = async (found: Found, hasAnswered = found === 'gone'): Promise<void> => {
    await waitFor(() => watches.size === 1);
    const [watch] = watches;
    watches.clear();
    watch?.(found, hasAnswered);
    await turns(settled);
  };
  return { find, watches, attached };
}

test('other machines are watched while the program has no consumer', async (t) => {
  const bus = new EventBus({ copy: structuredClone });
  t.after(() => bus.close());
  const reasons = reasonsOf(bus, 'a');
  const { find, watches, attached } = uplinkOf(bus);
  await find('unknown');
  assert.deepEqual(reasons, []);
  await find('absent');
  await find('absent');
  assert.deepEqual(reasons, ['none']);
  await find('gone');
  await find('unknown');
  assert.deepEqual(reasons, ['none', 'lost']);
  const consumer = bus.consumer('a', () => {});
  await find('absent');
  assert.equal(watches.size, 0);
  consumer.close();
  await waitFor(() => watches.size === 1);
  await turns(settled);
  assert.deepEqual(reasons, ['none', 'lost', 'closed']);
  attached.ended();
  for (const each of watches) each('unknown', false);
  watches.clear();
  await turns(settled);
  assert.equal(watches.size, 0);
  const unwatched = bus.monitor('b', () => {});
  await turns(settled);
  unwatched.close();
});

test('a consumer on another machine that ends while the server is away is lost', async (t) => {
  const bus = new EventBus({ copy: structuredClone });
  t.after(() => bus.close());
  const reasons = reasonsOf(bus, 'a');
  const { find } = uplinkOf(bus);
  await find('unknown', true);
  await find('absent');
  assert.deepEqual(reasons, ['lost']);
  await find('absent');
  await find('unknown', true);
  await find('unknown');
  await find('absent');
  await find('absent');
  assert.deepEqual(reasons, ['lost', 'lost']);
});
