import assert from 'node:assert/strict';
import { test } from 'node:test';

const { physicalFirst, placeOf } = await import(
  new URL('../../../bench/lib/machine.js', import.meta.url).href
);

test('one hardware thread of each physical core comes before all second ones', () => {
  const pairs = (core: number) => [core & ~1, core | 1]; // 0 and 1 are one core, 2 and 3 another
  assert.deepEqual(physicalFirst([0, 1, 2, 3], pairs), [0, 2, 1, 3]);
  const halves = (core: number) => [core % 3, (core % 3) + 3];
  assert.deepEqual(physicalFirst([0, 1, 2, 3, 4, 5], halves), [0, 1, 2, 3, 4, 5]);
});

test('a core whose first thread is not allowed is no second thread', () => {
  const pairs = (core: number) => [core & ~1, core | 1];
  assert.deepEqual(physicalFirst([1, 2, 3], pairs), [1, 2, 3]);
});

test('results of another line of Node are stored beside, after fewer rounds', () => {
  assert.deepEqual(placeOf('v24.1.0'), { folder: '', maxRounds: Infinity });
  assert.deepEqual(placeOf('v26.10.0'), { folder: 'node-26/', maxRounds: 3 });
});
