// The contract of maps, locks and counters, on both of their stores: this machine's memory and NATS KV.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { nativeBinding } from '../../src/native.js';
import { type DataSpace, localData } from '../../src/shared-data/index.js';
import { joinBus, skip as skipNats, startServer } from '../cluster/server.js';

const secret = 'nobody else knows this';

const places = [
  {
    place: 'memory',
    skip: nativeBinding() === undefined && 'needs the native core',
    open: async (): Promise<DataSpace> => localData,
  },
  {
    place: 'NATS',
    skip: skipNats,
    open: async (t: TestContext): Promise<DataSpace> => {
      const server = await startServer(t, ['-js']);
      return (await joinBus(t, server, { secret })).cluster.data;
    },
  },
];

async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const found: Item[] = [];
  for await (const item of items) found.push(item);
  return found;
}

class Point {
  readonly x: number;
  constructor(x: number) {
    this.x = x;
  }
  double(): number {
    return this.x * 2;
  }
}

for (const { place, skip, open } of places) {
  test(`${place}: maps, counters and locks keep their contract`, { skip }, async (t) => {
    const data = await open(t);

    await t.test('a map has what was set, with revisions that grow', async () => {
      const map = data.map<unknown>('a map');
      assert.equal(await map.get('k'), undefined);
      assert.equal(await map.has('k'), false);
      const first = await map.set('k', { list: [1, new Map([['a', new Date(5)]])] });
      assert.deepEqual(await map.get('k'), { list: [1, new Map([['a', new Date(5)]])] });
      const second = await map.set('k', 2);
      assert.ok(second > first);
      assert.deepEqual(await map.getEntry('k'), { key: 'k', value: 2, revision: second });
      assert.equal(await data.map('another map').has('k'), false);

      assert.equal(await map.setIfAbsent('k', 3), undefined);
      assert.equal(await map.compareAndSet('k', first, 3), undefined);
      assert.equal(await map.get('k'), 2);
      assert.ok(Number(await map.compareAndSet('k', second, 3)) > second);
      assert.equal(await map.get('k'), 3);

      assert.equal(await map.delete('k'), true);
      assert.equal(await map.delete('k'), false);
      assert.equal(await map.get('k'), undefined);
      assert.equal(await map.compareAndSet('k', second, 3), undefined);
      assert.ok(Number(await map.setIfAbsent('k', undefined)) > second);
      assert.equal(await map.has('k'), true);
    });

    await t.test('functions and classes travel where the writer is trusted', async () => {
      const map = data.map<unknown>('code');
      const factor = 3;
      await map.set('fn', (n: number) => n * factor);
      await map.set('point', new Point(4));
      const fn = await map.get('fn');
      assert.ok(typeof fn === 'function');
      assert.equal(fn(2), 6);
      const point = await map.get('point');
      assert.equal(Object(point).double(), 8);
    });

    await t.test('keys are any texts', async () => {
      const map = data.map<string>('keys/of *any* kind.>');
      const keys = [
        'a.b',
        '.',
        '..',
        'a..b.',
        '_kv',
        'ä=%41',
        '*',
        '>',
        'a b',
        '🦀',
        'k'.repeat(500),
      ];
      for (const key of keys) await map.set(key, key);
      for (const key of keys) assert.equal(await map.get(key), key);
      assert.deepEqual((await all(map.keys())).sort(), [...keys].sort());
      assert.equal(await map.size(), keys.length);
      assert.deepEqual((await all(map.entries())).sort(), keys.map((key) => [key, key]).sort());
      await map.delete('*');
      assert.equal(await map.size(), keys.length - 1);
      await map.clear();
      assert.deepEqual(await all(map.keys()), []);
    });

    await t.test('a watch has the present entries and each change after them', async () => {
      const map = data.map<number>('watched');
      await map.set('a', 1);
      await map.set('gone', 1);
      await map.delete('gone');
      const changes = map.watch()[Symbol.asyncIterator]();
      const next = async () => {
        const { value } = await changes.next();
        const { revision, ...change } = Object(value);
        assert.ok(revision > 0);
        return change;
      };
      assert.deepEqual(await next(), { type: 'set', key: 'a', value: 1, isInitial: true });
      await map.set('b', 2);
      assert.deepEqual(await next(), { type: 'set', key: 'b', value: 2, isInitial: false });
      const later = next();
      await map.delete('a');
      assert.deepEqual(await later, { type: 'delete', key: 'a', isInitial: false });
      await changes.return?.();

      const ofB = new AbortController();
      const seen: unknown[] = [];
      const ended = assert.rejects(
        async () => {
          for await (const change of map.watch({ key: 'b', signal: ofB.signal })) {
            seen.push('value' in change ? change.value : change.type);
            if (seen.length === 1) {
              await map.set('c', 1);
              await map.set('b', 3);
            } else ofB.abort();
          }
        },
        { code: 'ABORTED' },
      );
      await ended;
      assert.deepEqual(seen, [2, 3]);
    });

    await t.test('a counter adds what all add', async () => {
      const counter = data.counter('hits');
      assert.equal(await counter.get(), 0);
      await Promise.all(Array.from({ length: 20 }, () => data.counter('hits').add(2)));
      assert.equal(await counter.add(-1), 39);
      assert.equal(await counter.compareAndSet(1, 5), false);
      assert.equal(await counter.compareAndSet(39, 5), true);
      assert.equal(await counter.get(), 5);
      assert.equal(await data.counter('others').get(), 0);
      await counter.compareAndSet(5, Number.MAX_SAFE_INTEGER);
      await assert.rejects(counter.add(), { code: 'OPTION_INVALID' });
    });

    await t.test('one at a time has the lock, each with a larger token', async () => {
      const tokens: number[] = [];
      let holders = 0;
      const work = async (): Promise<void> => {
        await using lease = await data.lock('work').acquire();
        holders += 1;
        assert.equal(holders, 1);
        tokens.push(lease.token);
        await new Promise((resolve) => setImmediate(resolve));
        assert.equal(lease.signal.aborted, false);
        holders -= 1;
      };
      await Promise.all(Array.from({ length: 5 }, work));
      assert.deepEqual(
        tokens,
        [...new Set(tokens)].sort((one, other) => one - other),
      );
    });

    await t.test('a lock that is held makes others wait until their limits', async () => {
      const lock = data.lock('held');
      const lease = await lock.acquire({ leaseMs: 1000 });
      const timedOut = { code: 'SHARED_DATA_TIMED_OUT', name: 'TimeoutError' };
      await assert.rejects(lock.acquire({ timeoutMs: 0 }), timedOut);
      await assert.rejects(lock.acquire({ timeoutMs: 1500 }), timedOut); // it is renewed
      assert.equal(lease.signal.aborted, false);
      const over = AbortSignal.timeout(50);
      await assert.rejects(lock.acquire({ signal: over }), { code: 'ABORTED' });
      const waiting = lock.acquire({ timeoutMs: Infinity });
      await lease.release();
      await lease.release();
      await using later = await waiting;
      assert.ok(later.token > lease.token);
    });

    await t.test('a wait that ends at any moment leaves no lock behind', async () => {
      for (let turns = 0; turns < 20; turns += 1) {
        const lock = data.lock(`aborted ${turns}`);
        const over = new AbortController();
        const acquired = lock.acquire({ signal: over.signal });
        const settled = acquired.then(
          (lease) => lease.release(),
          (error: unknown) => assert.equal(Object(error).code, 'ABORTED'),
        );
        for (let turn = 0; turn < turns; turn += 1) await undefined;
        over.abort();
        await settled;
        await using _ = await lock.acquire({ timeoutMs: 5000 }); // less than the lease
      }
    });

    await t.test('an owner that was blocked for its lease has lost it', async () => {
      const lock = data.lock('blocked');
      const lease = await lock.acquire({ leaseMs: 100 });
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 150);
      assert.equal(lease.signal.aborted, true);
      assert.equal(Object(lease.signal.reason).code, 'SHARED_LOCK_LOST');
      await using later = await lock.acquire();
      assert.ok(later.token > lease.token);
      await lease.release(); // does not free that of another
      await assert.rejects(lock.acquire({ timeoutMs: 0 }), { code: 'SHARED_DATA_TIMED_OUT' });
    });

    await t.test('wrong options and values are refused in one sentence', async () => {
      const invalid = { code: 'OPTION_INVALID' };
      const wrong = (value: unknown) => Object({ value }).value;
      for (const name of ['', 5, undefined]) {
        const value = wrong(name);
        assert.throws(() => data.map(value), invalid);
        assert.throws(() => data.lock(value), invalid);
        assert.throws(() => data.counter(value), invalid);
        await assert.rejects(data.map('m').get(value), invalid);
      }
      assert.throws(() => data.map('m', wrong({ timeout: 5 })), /there is no "timeout"/);
      for (const options of [null, 5, []]) {
        const value = wrong(options);
        const noObject = { ...invalid, message: /^the options of [\w ]+ must be an object, not / };
        assert.throws(() => data.map('m', value), noObject);
        assert.throws(() => data.lock('m', value), noObject);
        assert.throws(() => data.counter('m', value), noObject);
        await assert.rejects(data.lock('m').acquire(value), noObject);
        assert.throws(() => data.map('m').watch(value), noObject);
      }
      for (const timeoutMs of [0, -1, 1.5, Infinity]) {
        assert.throws(() => data.map('m', { timeoutMs }), invalid);
        assert.throws(() => data.lock('m', { timeoutMs }), invalid);
        assert.throws(() => data.counter('m', { timeoutMs }), invalid);
      }
      const lock = data.lock('wrong');
      for (const leaseMs of [0, 99, 1.5, Infinity]) {
        await assert.rejects(lock.acquire({ leaseMs }), invalid);
      }
      await assert.rejects(lock.acquire({ timeoutMs: -1 }), invalid);
      await assert.rejects(lock.acquire(wrong({ signal: 1 })), invalid);
      await assert.rejects(lock.acquire(wrong({ lease: 1 })), /there is no "lease"/);
      await assert.rejects(lock.acquire({ signal: AbortSignal.abort() }), { code: 'ABORTED' });
      const map = data.map<unknown>('wrong');
      assert.throws(() => map.watch(wrong({ keys: 1 })), /there is no "keys"/);
      assert.throws(() => map.watch({ key: '' }), invalid);
      assert.throws(() => map.watch({ signal: wrong(1) }), invalid);
      await assert.rejects(map.compareAndSet('k', 0, 1), invalid);
      await assert.rejects(map.set('\ud800', 1), invalid);
      const large = { code: 'SHARED_DATA_TOO_LARGE' };
      await assert.rejects(map.set('k'.repeat(501), 1), large);
      assert.throws(() => data.map('k'.repeat(61)), large);
      await assert.rejects(map.set('k', new Uint8Array(2 ** 21)), large);
      await assert.rejects(map.set('k', new MessageChannel().port1), {
        code: 'TRANSFER_UNSUPPORTED',
      });
      const counter = data.counter('wrong');
      await assert.rejects(counter.add(0.5), invalid);
      await assert.rejects(counter.compareAndSet(0, NaN), invalid);
      await assert.rejects(counter.compareAndSet(wrong('0'), 1), invalid);
    });
  });
}
