// Services: the methods of an object, called by proxies.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import {
  type AdvertisedService,
  EventBus,
  type ServiceProxy,
  type Uplink,
} from '../../src/bus/index.js';
import { hasCode } from '../../src/errors.js';
import { Pool, bus as programBus } from '../../src/public.js';

function openBus(t: TestContext): EventBus {
  const bus = new EventBus({ copy: structuredClone });
  t.after(() => bus.close());
  return bus;
}

class Base {
  readonly shelf = new Map([['lamp', 3]]);
  #calls = 0;

  inherited(): number {
    this.#calls += 1;
    return this.#calls;
  }

  hidden(): string {
    return 'no';
  }

  toString(): string {
    return 'a shop';
  }
}

class Shop extends Base {
  constructor() {
    super();
    Reflect.set(this, 'hidden', 'a property');
  }

  own = (name: string): number | undefined => this.shelf.get(name);

  get accessor(): () => string {
    return assert.fail('an accessor was called');
  }

  async prices(...names: string[]): Promise<{ readonly names: string[]; readonly total: number }> {
    return { names, total: names.length };
  }

  fails(): never {
    throw Object.assign(new RangeError('sold out'), { code: 'E_SOLD' });
  }

  _internal(): string {
    return 'no';
  }

  // biome-ignore lint/suspicious/noThenProperty: the subject of a test
  then(): string {
    return 'no';
  }
}

test('the methods of an object are requests of a proxy', async (t) => {
  const bus = openBus(t);
  const service = bus.service('shop', new Shop());
  const shop = bus.proxy<Shop>('shop');
  assert.equal(await shop.own('lamp'), 3);
  assert.deepEqual(await shop.prices('a', 'b'), { names: ['a', 'b'], total: 2 });
  assert.deepEqual([await shop.inherited(), await shop.inherited()], [1, 2]);
  await assert.rejects(shop.fails(), (error: unknown) => {
    assert.ok(hasCode(error, 'BUS_HANDLER_ERROR'));
    assert.match(error.message, /^the consumer of shop threw: sold out$/);
    assert.ok(error.cause instanceof RangeError);
    return true;
  });
  service.close();
  await assert.rejects(shop.inherited(), { code: 'BUS_NO_HANDLERS' });
});

test('what is no method is not offered, and no request', async (t) => {
  const bus = openBus(t);
  bus.service('shop', new Shop());
  const shop: object = bus.proxy('shop');
  assert.equal(await shop, shop);
  assert.equal(JSON.stringify({ shop }), '{"shop":{}}');
  assert.equal(String(shop), '[object Object]');
  const hidden = ['then', 'toJSON', '_internal', '#private', '', '__proto__', Symbol.asyncIterator];
  for (const name of hidden) assert.notEqual(typeof Reflect.get(shop, name), 'function');
  assert.throws(() => Object.assign(shop, { own: 1 }), TypeError);
  assert.equal(bus.stats.sent, 0);
  for (const name of ['hidden', 'accessor', 'shelf', 'missing']) {
    await assert.rejects(Reflect.get(shop, name)(), {
      code: 'BUS_NO_METHOD',
      message: `the service at shop has no method ${name}: check its name, and the version of the service`,
    });
  }
  for (const method of ['then', '_internal', 'toString', 'constructor', '__proto__']) {
    const call = bus.request('shop', { method, args: [] });
    await assert.rejects(call, { code: 'BUS_NO_METHOD' });
  }
});

test('a service takes calls only, and its options as a consumer', async (t) => {
  const bus = openBus(t);
  bus.service('shop', { one: () => 1 });
  for (const body of [undefined, 1, {}, { method: 'one' }, { method: 1, args: [] }]) {
    await assert.rejects(bus.request('shop', body), (error: unknown) => {
      assert.ok(hasCode(error, 'BUS_HANDLER_ERROR') && hasCode(error.cause, 'OPTION_INVALID'));
      assert.match(
        error.message,
        /"shop" is a service, .*: call its methods by bus\.proxy\("shop"\)$/,
      );
      return true;
    });
  }
  assert.equal((await bus.request('shop', { method: 'one', args: [] })).body, 1);
});

test('a call of a proxy in a worker is refused with the way out', async (t) => {
  const pool = new Pool({ size: 1 });
  t.after(() => pool.close());
  const bus = openBus(t);
  bus.service('shop', new Shop());
  const shop = bus.proxy<Shop>('shop');
  const refused = {
    code: 'TRANSFER_UNSUPPORTED',
    message: /it is a proxy of the service at shop: .*; call it here and pass the result, /,
  };
  await assert.rejects(
    pool.run(() => shop.inherited()),
    refused,
  );
  await assert.rejects(
    pool.run((given: object) => given, shop),
    refused,
  );
  await assert.rejects(
    pool.run(() => programBus.proxy<Shop>('shop').inherited()),
    {
      code: 'BUS_NO_HANDLERS',
      message: /^shop has no consumers in a worker, .*: call it where run/,
    },
  );
});

test('a proxy sends its options with each call', async (t) => {
  const bus = openBus(t);
  const seen: unknown[] = [];
  bus.intercept({ inbound: ({ headers, body }) => void seen.push(headers, body) });
  bus.service('shop', { one: () => 1, never: () => new Promise(() => {}) });
  const headers = { user: ['a', 'b'] };
  const shop = bus.proxy<{ one(): number }>('shop', { headers, local: 'only', timeoutMs: 9999 });
  assert.equal(await shop.one(), 1);
  assert.deepEqual(seen, [{ user: 'a, b' }, { method: 'one', args: [] }]);
  const abort = new AbortController();
  const { signal } = abort;
  const aborted = bus.proxy<{ never(): void }>('shop', { signal }).never();
  abort.abort();
  await assert.rejects(aborted, { code: 'ABORTED' });
});

test('wrong services and options are refused', (t) => {
  const bus = openBus(t);
  const code = 'OPTION_INVALID';
  const service = (...args: unknown[]) => Reflect.apply(bus.service, bus, args);
  const proxy = (...args: unknown[]) => Reflect.apply(bus.proxy, bus, args);
  for (const wrong of [undefined, null, 7, () => {}, {}, { _a() {} }, { a: 1 }]) {
    const message = /^service is .*: it must be an object with methods$/;
    assert.throws(() => service('shop', wrong), { code, message });
  }
  const right = { a() {} };
  for (const address of ['', 7]) {
    assert.throws(() => service(address, right), { code, message: /^address is / });
    assert.throws(() => proxy(address), { code, message: /^address is / });
  }
  for (const options of [null, 7, { maxBuffer: 1 }, { maxBuffered: 0 }, { isLocal: 1 }]) {
    assert.throws(() => service('shop', right, options), { code });
  }
  const signal = {};
  for (const options of [
    ...[null, [], { codec: 'a' }, { timeout: 1 }, { timeoutMs: 0 }],
    ...[{ signal }, { local: 'no' }, { headers: { a: 1 } }],
  ]) {
    assert.throws(() => proxy('shop', options), { code });
  }
});

const micro = { name: 'shop', version: '1.2.3' };

/** An uplink that carries nothing. */
function showing(shown: Set<AdvertisedService>): Uplink {
  return {
    hasRoom: true,
    announce: () => {},
    deliver: () => {},
    check: () => {},
    watch: () => () => {},
    flush: async () => {},
    catchUp: async () => {},
    advertise: (service) => {
      shown.add(service);
      return () => void shown.delete(service);
    },
  };
}

test('a service with a description is shown while there is an uplink, and no longer than it lives', async (t) => {
  const bus = openBus(t);
  const before = bus.service('before', { one: () => 1 }, { micro });
  bus.service('plain', { one: () => 1 });
  const shown = new Set<AdvertisedService>();
  const addresses = () => [...shown].map(({ address }) => address);
  const attached = bus.attachUplink(showing(shown), undefined);
  const after = bus.service('after', { one: () => 1 }, { micro });
  assert.deepEqual(addresses(), ['before', 'after']);
  before.close();
  await before.closed;
  assert.deepEqual(addresses(), ['after']);
  attached.ended();
  shown.clear();
  bus.attachUplink(showing(shown), undefined);
  assert.deepEqual(addresses(), ['after']);
  bus.close();
  await after.closed;
  assert.deepEqual(addresses(), []);
});

test('wrong descriptions of services are refused', (t) => {
  const bus = openBus(t);
  const service = (options: unknown) =>
    Reflect.apply(bus.service, bus, ['shop', { one: () => 1 }, options]);
  for (const [options, message] of [
    [{ micro: null }, /^the options of micro must be an object/],
    [{ micro: {} }, /^micro\.name is /],
    [{ micro: { ...micro, name: 'a.b' } }, /^micro\.name is "a\.b": it must be letters/],
    [{ micro: { name: 'shop' } }, /^micro\.version is /],
    [
      { micro: { ...micro, version: '1' } },
      /^micro\.version is "1": it must be a semantic version/,
    ],
    [{ micro: { ...micro, description: 1 } }, /^micro\.description is 1/],
    [{ micro: { ...micro, metadata: { a: 1 } } }, /^micro\.metadata\.a is 1: it must be a text/],
    [{ micro: { ...micro, metadata: new Map() } }, /^micro\.metadata is /],
    [{ micro: { ...micro, metaData: {} } }, /^there is no "metaData" in the options of micro/],
    [{ micro, isLocal: true }, /^isLocal is true: it must be false with micro/],
  ] as const) {
    assert.throws(() => service(options), { code: 'OPTION_INVALID', message });
  }
});

/** Compiles only if the types of a proxy are right. */
export function typesOf(shop: ServiceProxy<Shop>): void {
  const total: Promise<{ readonly names: string[]; readonly total: number }> = shop.prices('a');
  const count: Promise<number> = shop.inherited();
  const names: 'own' | 'prices' | 'inherited' | 'fails' | 'accessor' | 'hidden' = Object(0);
  const all: keyof typeof shop = names;
  // @ts-expect-error: no method of a service
  void shop.then;
  // @ts-expect-error: an internal name
  void (shop._internal ?? [total, count, all]);
}
