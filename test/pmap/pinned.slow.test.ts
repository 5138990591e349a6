// Captures of a mapper: sent to each worker once, however many chunks follow, and dropped when the map has
// ended, however it ended.

import assert from 'node:assert/strict';
import { Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { shareBlocks } from '../../src/channels/index.js';
import { type Pool, pmap, shared } from '../../src/public.js';
import { parentExporter } from '../../src/worker/index.js';
import { deadlineMs, openPool } from '../pool/calls/ways.js';
import { waitFor } from '../support/index.js';
import { Counted } from './mappers.js';
import { count, sharedPool, via, workerWays } from './ways.js';

setFlagsFromString('--expose-gc');
const collect: () => void = runInNewContext('gc');

/** The numbers of pinned functions, as the exporter gave them out and took them back. */
function watchPins(t: TestContext) {
  const pinned = new Set<number>();
  const sent: number[] = [];
  const exporter = parentExporter();
  const pin = t.mock.method(exporter, 'pin');
  const unpin = t.mock.method(exporter, 'unpin');
  const definition = t.mock.method(exporter, 'definition');
  return {
    /** Pins handed out and not removed. */
    get live(): number[] {
      pinned.clear();
      for (const { result } of pin.mock.calls) {
        if (result !== undefined && result.id < 0) pinned.add(result.id);
      }
      for (const { arguments: args } of unpin.mock.calls) pinned.delete(args[0]);
      return [...pinned];
    },
    /** The number of the last definition that a pinned function needs: there are about so many. */
    get lastDefinition(): number {
      const needed = pin.mock.calls.flatMap(({ result }) => result?.definitions ?? []);
      return Math.max(...needed);
    },
    /** Number of pins handed out. */
    get total(): number {
      return pin.mock.calls.length;
    },
    /** Pins written for a worker, once for each time. */
    get sent(): number[] {
      sent.length = 0;
      for (const { arguments: args } of definition.mock.calls) if (args[0] < 0) sent.push(args[0]);
      return sent;
    },
  };
}

/** Heap of the worker of a pool of one, in MiB. */
function workerMib(pool: Pool): Promise<number> {
  return pool.run(async () => {
    const { setFlagsFromString } = await import('node:v8');
    const { runInNewContext } = await import('node:vm');
    setFlagsFromString('--expose-gc');
    runInNewContext('gc')();
    const { heapUsed, external } = process.memoryUsage();
    return (heapUsed + external) / 2 ** 20;
  });
}

for (const way of workerWays) {
  test(`${way.name}: what a mapper captured is read once for the map, and comes once to a worker`, async (t) => {
    const pool = openPool(t, { size: 2 }, way.way);
    const constant = new Counted(`constant ${way.name}`);
    const map = pmap(count(60), () => constant.received, { pool, chunk: 1 });
    assert.deepEqual(await map, new Array(60).fill(1));
    assert.equal(map.stats().chunks, 60);
    assert.equal(constant.sent, 1);
  });

  test(`${way.name}: the items of pairs are read once for the map, and come once to a worker`, async (t) => {
    const pool = openPool(t, { size: 2 }, way.way);
    const items = count(5).map((item) => new Counted(`item ${item} ${way.name}`));
    const pairs = pmap.pairs(items, (a, b) => [a.received, b.received], { pool, chunk: 1 });
    assert.deepEqual(await pairs, new Array(10).fill([1, 1]));
    assert.deepEqual(
      items.map((item) => item.sent),
      [1, 1, 1, 1, 1],
    );
  });

  test(`${way.name}: what a reduction captured is read once for its maps and once for its combining`, async (t) => {
    const pool = openPool(t, { size: 1 }, way.way);
    const constant = new Counted(`of a reduction ${way.name}`);
    const combine = (left: number, right: number): number =>
      Math.max(left, right, constant.received);
    await pmap.reduce(count(60), () => constant.received, combine, 0, { pool, chunk: 1 });
    // The tree of partial results is combined level by level: each is a map.
    assert.ok(constant.sent <= 8, `sent ${constant.sent} times`);
  });

  test(`${way.name}: a pinned function is written once for each worker`, async (t) => {
    const pool = openPool(t, { size: 2 }, way.way);
    await pool.warm();
    const pins = watchPins(t);
    const list = count(1000);
    await pmap(count(100), (item) => list[item], { pool, chunk: 1 });
    assert.equal(pins.total, 1);
    assert.ok(pins.sent.length >= 1 && pins.sent.length <= 2, `${pins.sent.length} times`);
    assert.deepEqual(pins.live, []);
  });

  test(`${way.name}: however a map ends, it leaves nothing pinned`, async (t) => {
    const pool = sharedPool(way.way);
    const pins = watchPins(t);
    const list = [1];
    const fail = (item: number): number => {
      if (item === 30) throw new Error(`thirty of ${list}`);
      return item;
    };
    await assert.rejects(pmap(count(50), fail, { pool, chunk: 3 }), /thirty/);
    const abort = new AbortController();
    const aborted = pmap(count(5000), fail, { pool, chunk: 1, signal: abort.signal });
    abort.abort();
    await assert.rejects(aborted, { code: 'ABORTED' });
    for await (const _ of pmap.stream(count(50), (item) => item + list.length, { pool })) break;
    const told = pmap(count(50), (item) => item + list.length, {
      pool,
      onProgress() {
        throw new Error('told');
      },
    });
    await assert.rejects(told, /told/);
    const unread = [new WeakRef({}), ...count(5)];
    await assert.rejects(
      pmap(unread, () => list, { pool }),
      { code: 'TRANSFER_UNSUPPORTED' },
    );
    const { signal } = abort;
    await assert.rejects(
      pmap([1], () => list, { pool, signal }),
      { code: 'ABORTED' },
    );
    const sum = (left: number, right: number): number => left + right + list.length;
    assert.equal(await pmap.reduce(count(4), fail, sum, 0, { pool, chunk: 1 }), 10);
    assert.ok(pins.total >= 7, `${pins.total} were pinned`);
    assert.deepEqual(pins.live, []);
  });

  test(`${way.name}: a worker drops what mappers captured when their maps have ended`, async (t) => {
    const pool = openPool(t, { size: 1 }, way.way);
    const maps = async (rounds: number): Promise<void> => {
      for (let round = 0; round < rounds; round += 1) {
        const list = [`${round} `.repeat(2 ** 19)];
        const sizes = await pmap([1, 2], () => list[0]?.length ?? 0, { pool, chunk: 1 });
        assert.equal(sizes[0], list[0]?.length);
      }
    };
    await maps(2);
    const before = await workerMib(pool);
    await maps(40); // 1 MiB or more each
    await waitFor(
      async () => (await workerMib(pool)) - before < 15,
      deadlineMs,
      'they are dropped',
    );
  });
}

/** Maps whose functions are made anew for each, and captured this and that. */
const forms: readonly ((round: number, pool: Pool) => Promise<unknown>)[] = [
  (round, pool) => {
    const list = [round];
    return pmap([1, 2], (item) => item + (list[0] ?? 0), { pool });
  },
  (round, pool) => pmap([1, 2], (item) => item + round, { pool }),
  async (round, pool) => {
    for await (const _ of pmap.stream([1, 2], (item) => item + round, { pool }));
  },
  (round, pool) => pmap.filter([1, 2], (item) => item > round, { pool }),
  (round, pool) => pmap.pairs([1, 2, 3], (a, b) => a + b + round, { pool }),
  (round, pool) => pmap(new Int8Array(3), (item) => item + round, { pool }),
];

test('after 1,000 maps there are no more definitions than after some, and nothing is pinned', async (t) => {
  const pool = openPool(t, { size: 1 });
  const pins = watchPins(t);
  for (let round = 0; round < 100; round += 1) await forms[round % forms.length]?.(round, pool);
  const before = pins.lastDefinition;
  for (let round = 0; round < 1000; round += 1) await forms[round % forms.length]?.(round, pool);
  const after = pins.lastDefinition;
  assert.ok(after - before < 20, `${before} definitions, then ${after}`);
  assert.equal(pins.total, 1100);
  assert.deepEqual(pins.live, []);
});

test('after 200 reductions there are no more definitions than after some, and nothing is pinned', async (t) => {
  const pool = openPool(t, { size: 1 });
  const pins = watchPins(t);
  const reduceOnce = (round: number): Promise<number> => {
    const combine = (left: number, right: number): number => left + right + round;
    return pmap.reduce([1, 2], (item) => item + round, combine, 0, { pool });
  };
  for (let round = 0; round < 50; round += 1) await reduceOnce(round);
  const before = pins.lastDefinition;
  for (let round = 0; round < 200; round += 1) await reduceOnce(round);
  const after = pins.lastDefinition;
  assert.ok(after - before < 20, `${before} definitions, then ${after}`);
  assert.deepEqual(pins.live, []);
});

test('a worker drops what reductions captured when they have ended', async (t) => {
  const pool = openPool(t, { size: 1 });
  const reductions = async (rounds: number): Promise<void> => {
    for (let round = 0; round < rounds; round += 1) {
      const text = `${round} `.repeat(2 ** 19);
      const combine = (left: number, right: number): number => left + right + text.length;
      await pmap.reduce([1, 2], () => text.length, combine, 0, { pool, chunk: 1 });
    }
  };
  // A few of the functions that are made anew at each call are kept for good.
  await reductions(20);
  const before = await workerMib(pool);
  await reductions(40); // 1 MiB or more each
  await waitFor(async () => (await workerMib(pool)) - before < 20, deadlineMs, 'they are dropped');
});

test('a large constant crosses the socket once, not with each chunk', async (t) => {
  const pool = openPool(t, { size: 1, channel: 'socket' });
  await pool.warm();
  let sentBytes = 0;
  const write = Socket.prototype.write;
  t.mock.method(Socket.prototype, 'write', function (this: Socket, ...args: unknown[]) {
    if (ArrayBuffer.isView(args[0])) sentBytes += args[0].byteLength;
    return Reflect.apply(write, this, args);
  });
  const large = Buffer.alloc(8 * 2 ** 20, 1);
  const sizes = await pmap(count(40), () => large.byteLength, { pool, chunk: 1 });
  assert.deepEqual(sizes, new Array(40).fill(large.byteLength));
  assert.ok(
    sentBytes > large.byteLength && sentBytes < 1.5 * large.byteLength,
    `${sentBytes} bytes`,
  );
});

for (const way of workerWays.filter(({ way: { channel } }) => channel === 'shm')) {
  test(`${way.name}: shared memory that a mapper captured is the same for all workers and the caller`, async () => {
    const counter = new Int32Array(shared(8).buffer, 0, 2);
    const map = pmap(count(500), (item) => Atomics.add(counter, 0, item), {
      ...via(way),
      chunk: 3,
    });
    await map;
    assert.equal(counter[0], (500 * 499) / 2);
  });

  test(`${way.name}: shared memory that a mapper captured is freed while the pool lives`, async (t) => {
    const pool = openPool(t, { size: 1 }, way.way);
    const { blocks, leave } = shareBlocks();
    t.after(leave);
    const block = await (async () => {
      const bytes = shared(200_000);
      await pmap(count(20), () => bytes.byteLength, { pool, chunk: 1 });
      await pmap(bytes, (byte) => byte + 1, { pool, into: bytes, chunk: 10_000 });
      return blocks.sharedBlock(bytes.buffer);
    })();
    assert.ok(block);
    await waitFor(async () => {
      collect();
      await workerMib(pool);
      try {
        blocks.borrow(block, true);
        return false;
      } catch {
        return true;
      }
    });
  });
}
