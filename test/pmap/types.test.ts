// Types of the map: this file compiles only while they hold, and the promised values come.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type MapOptions, type Pool, pmap } from '../../src/public.js';

const inline = { channel: 'inline' } as const;

test('results have the awaited type of what the mapper returns', async () => {
  const later: number[] = await pmap([1, 2], async (item) => item + 1, inline);
  const entries: string[] = await pmap(new Map([['a', 1]]), ([key, value]) => key + value, inline);
  const letters: string[] = await pmap('ab', (letter) => letter, inline);
  const readOnly: boolean[] = await pmap([1, 2] as const, (item) => item === 2, inline);
  assert.deepEqual(
    [later, entries, letters, readOnly],
    [[2, 3], ['a1'], ['a', 'b'], [false, true]],
  );
});

test('a reduction has the type that its async mapper promises', async () => {
  const sum: number = await pmap.reduce(
    [1, 2, 3],
    async (item) => item,
    (left, right) => left + right,
    0,
    inline,
  );
  const text: string = await pmap.reduce(
    [1, 2],
    (item) => `${item}`,
    async (left, right) => left + right,
    '',
    inline,
  );
  assert.deepEqual([sum, text], [6, '12']);
});

test('a type guard narrows what a filter keeps', async () => {
  const mixed: (string | number)[] = ['a', 1, 'b'];
  const texts: string[] = await pmap.filter(
    mixed,
    (item): item is string => typeof item === 'string',
    inline,
  );
  assert.deepEqual(texts, ['a', 'b']);
});

test('a map over numbers of a typed array must give such numbers', async () => {
  const doubles: Float64Array = await pmap(new Float64Array([1]), (item) => item * 2, inline);
  const big: BigInt64Array = await pmap(new BigInt64Array([1n]), (item) => item + 1n, inline);
  assert.deepEqual([[...doubles], [...big]], [[2], [2n]]);
  // @ts-expect-error: a list of texts is not what comes
  const notNumbers = await pmap(new Float64Array([1]), (item) => `v${item}`, inline);
  assert.ok(Number.isNaN(Reflect.get(notNumbers, 0)));
  const texts: string[] = await pmap(Array.from(doubles), (item) => `v${item}`, inline);
  assert.deepEqual(texts, ['v2']);
});

test('options that are undefined are those that were not given', async () => {
  const passed: { signal: AbortSignal | undefined; pool: Pool | undefined } = {
    signal: undefined,
    pool: undefined,
  };
  const options: MapOptions = { ...passed, ...inline };
  assert.deepEqual(await pmap([1], (item) => item, options), [1]);
});
