// Wrong options of a map, which are refused before a worker is started or an item is read. And the default
// channel.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Pool, pmap } from '../../src/public.js';
import { library, runProgram } from '../faults/child.js';
import { openPool } from '../pool/calls/ways.js';
import { mapWays, sharedPool, via, workerWays } from './ways.js';

/** Called with arguments that types would not allow. */
function call(form: (...args: never[]) => unknown, ...args: unknown[]): unknown {
  return Reflect.apply(form, undefined, args);
}

/** Every form of a map over `items` with a mapper and options. */
const forms: readonly (readonly [
  string,
  (items: unknown, mapper: unknown, options?: unknown) => unknown,
])[] = [
  ['pmap', (items, mapper, options) => call(pmap, items, mapper, options)],
  ['pmap.filter', (items, mapper, options) => call(pmap.filter, items, mapper, options)],
  ['pmap.pairs', (items, mapper, options) => call(pmap.pairs, items, mapper, options)],
  [
    'pmap.reduce',
    (items, mapper, options) => call(pmap.reduce, items, mapper, () => 1, 0, options),
  ],
  ['pmap.stream', async (items, mapper, options) => call(pmap.stream, items, mapper, options)],
];

function nameOf(value: unknown): string {
  if (typeof value === 'function') return 'a function';
  if (typeof value !== 'object' || value === null) return String(value);
  const name = Object.prototype.toString.call(value).slice(8, -1);
  return name === 'Object' ? JSON.stringify(value) : name;
}

const wrongOptions: [name: string, value: unknown][] = [
  ['pool', null],
  ['pool', {}],
  ['pool', 'pool'],
  ['pool', Pool],
  ['channel', 'carrier pigeon'],
  ['channel', 5],
  ['ordered', 'yes'],
  ['ordered', 1],
  ['chunk', 0],
  ['chunk', -1],
  ['chunk', 1.5],
  ['chunk', Number.NaN],
  ['chunk', Infinity],
  ['chunk', '10'],
  ['chunk', 'many'],
  ['chunk', null],
  ['lead', 0],
  ['lead', 2.5],
  ['lead', Infinity],
  ['lead', 'far'],
  ['signal', {}],
  ['signal', new AbortController()],
  ['signal', null],
  ['settled', 'yes'],
  ['settled', 0],
  ['retry', -1],
  ['retry', 0.5],
  ['retry', '1'],
  ['priority', 'high'],
  ['priority', Number.NaN],
  ['onProgress', 'tell'],
  ['onProgress', {}],
  ['into', new Float64Array(1)],
  ['chunkSize', 10],
  ['concurrency', 2],
  ['Ordered', true],
];

for (const [form, open] of forms) {
  for (const [name, value] of wrongOptions) {
    test(`${form} with ${name} ${nameOf(value)} is OPTION_INVALID and names it`, async () => {
      const map = async (): Promise<unknown> => open([1], () => 1, { [name]: value });
      await assert.rejects(
        map(),
        (error: Error & { code?: string }) =>
          error.code === 'OPTION_INVALID' && error.message.includes(name),
      );
    });
  }

  for (const options of [null, 5, 'fast', [], () => 1]) {
    test(`${form} with ${nameOf(options)} for options is OPTION_INVALID`, async () => {
      const map = async (): Promise<unknown> => open([1], () => 1, options);
      await assert.rejects(map(), { code: 'OPTION_INVALID', message: /options of a map must be/ });
    });
  }

  for (const items of [
    undefined,
    null,
    5,
    true,
    5n,
    Symbol('items'),
    {},
    { length: 3, 0: 1 },
    () => [1],
    Promise.resolve([1]),
    new WeakMap(),
    new ArrayBuffer(8),
    new DataView(new ArrayBuffer(8)),
  ]) {
    test(`${form} over ${nameOf(items)} is OPTION_INVALID and names the items`, async () => {
      const map = async (): Promise<unknown> => open(items, () => 1);
      await assert.rejects(map(), { code: 'OPTION_INVALID', message: /^items is / });
    });
  }

  for (const mapper of [undefined, null, 5, 'map', {}, [], Promise.resolve()]) {
    test(`${form} by ${nameOf(mapper)} is TASK_NOT_FUNCTION, and the items are not opened`, async () => {
      let opened = 0;
      const items = {
        [Symbol.iterator]() {
          opened += 1;
          return [1][Symbol.iterator]();
        },
      };
      const map = async (): Promise<unknown> => open(items, mapper);
      await assert.rejects(map(), { code: 'TASK_NOT_FUNCTION' });
      assert.equal(opened, 0);
    });
  }
}

test('what is refused starts no worker', async (t) => {
  const pool = openPool(t, { size: 1 });
  for (const [, open] of forms) {
    for (const [items, mapper, options] of [
      [5, () => 1, { pool }],
      [[1], 5, { pool }],
      [[1], () => 1, { pool, chunk: 0 }],
    ]) {
      await assert.rejects(async () => open(items, mapper, options));
    }
  }
  assert.equal(pool.stats().startedWorkers, 0);
});

test('a channel beside a pool is refused in words that help, unless it is inline', async (t) => {
  const pool = openPool(t, { size: 1 });
  const map = pmap([1], (item) => item, { pool, channel: 'socket' });
  await assert.rejects(map, {
    code: 'OPTION_INVALID',
    message: /^channel is "socket": it must be "auto" or "inline" beside pool/,
  });
  const inline = pmap([1], () => process.pid, { pool, channel: 'inline' });
  assert.deepEqual(await inline, [process.pid]);
  assert.deepEqual([inline.stats().channel, pool.stats().startedWorkers], ['inline', 0]);
});

test('into with settled is refused: nothing would go there', async () => {
  const options = { settled: true, into: new Float64Array(2), channel: 'inline' };
  const map = async (): Promise<unknown> => call(pmap, new Float64Array(2), () => 1, options);
  await assert.rejects(map(), { code: 'OPTION_INVALID', message: /into/ });
});

for (const way of mapWays) {
  test(`${way.name}: options that are undefined are as good as left out`, async () => {
    const given = via(way);
    const none = [
      'ordered',
      'chunk',
      'lead',
      'signal',
      'settled',
      'retry',
      'priority',
      'onProgress',
    ];
    const options = { ...given, ...Object.fromEntries(none.map((name) => [name, undefined])) };
    assert.deepEqual(await call(pmap, [3, 4], (item: number) => item + 1, options), [4, 5]);
  });
}

for (const way of workerWays) {
  test(`${way.name}: stats() of a map have its channel, and the reason`, async () => {
    const map = pmap([1], (item) => item, { pool: sharedPool(way.way) });
    await map;
    const { channel, why } = map.stats();
    assert.deepEqual([channel, why], [way.way.channel, 'it is the channel of the pool']);
  });
}

/** Maps by each channel, without a pool and without closing anything. */
function mapsByChannel(from: string): string {
  return `
    import { pmap } from ${JSON.stringify(from)};
    const offset = [100];
    const said = [];
    for (const channel of ['auto', 'shm', 'socket', 'memory', 'inline']) {
      const map = pmap([1, 2, 3], (item, index) => item * 10 + index + offset[0], { channel });
      const results = await map.catch((error) => error.code);
      said.push([channel, results, map.stats().channel]);
    }
    const text = await pmap.reduce('abc', (each) => each, (left, right) => left + right, '>');
    const pairs = await pmap.pairs([1, 2, 3], (a, b) => a * b);
    const doubled = [...await pmap(new Float64Array([1, 2]), (item) => item * 2)];
    console.log(JSON.stringify([...said, [text, pairs, doubled]]));`;
}

const results = [110, 121, 132];
const others = ['>abc', [2, 3, 6], [2, 4]];

for (const [what, from] of [
  ['modules', library],
  ['bundle', new URL('../../bundle/index.js', import.meta.url).href],
] as const) {
  test(`a program of the package as ${what} maps by every channel, and ends by itself`, async (t) => {
    const { stdout, stderr, status } = await runProgram(t, mapsByChannel(from));
    assert.equal(status, 0, stderr);
    assert.deepEqual(JSON.parse(stdout), [
      ['auto', results, 'shm'],
      ['shm', results, 'shm'],
      ['socket', results, 'socket'],
      ['memory', results, 'memory'],
      ['inline', results, 'inline'],
      others,
    ]);
  });
}

test('without the binary a map goes by socket, and channel "shm" is CHANNEL_UNAVAILABLE', async (t) => {
  const { stdout, stderr, status } = await runProgram(t, mapsByChannel(library), {
    env: { MANYCORE_NATIVE: 'off' },
  });
  assert.equal(status, 0, stderr);
  assert.deepEqual(JSON.parse(stdout), [
    ['auto', results, 'socket'],
    ['shm', 'CHANNEL_UNAVAILABLE', 'inline'],
    ['socket', results, 'socket'],
    ['memory', results, 'memory'],
    ['inline', results, 'inline'],
    others,
  ]);
});

test('a program ends by itself though a stream of it was left half read', async (t) => {
  const { stdout, stderr, status } = await runProgram(
    t,
    `import { pmap } from ${JSON.stringify(library)};
     const stream = pmap.stream([1, 2, 3, 4], (item) => item * 2, { chunk: 1 });
     console.log((await stream.next()).value);`,
  );
  assert.deepEqual([stdout, status], ['2\n', 0], stderr);
});

test('an unhandled rejection ends the program with its stack, once', async (t) => {
  const { stderr, status } = await runProgram(
    t,
    `import { pmap } from ${JSON.stringify(library)};
     pmap([1, 2, 3], () => { throw new RangeError('unheard'); }, { channel: 'inline' });`,
  );
  assert.equal(status, 1);
  assert.equal(stderr.match(/RangeError: unheard/g)?.length, 1, stderr);
  assert.ok(!stderr.includes(`${fileURLToPath(new URL('../../src/', import.meta.url))}`), stderr);
});
