// Formats of numbers in tables.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bytesText, countText, msText, percentText, shortTitle } from '../../src/observe/index.js';

const mib = 2 ** 20;

test('a missing value is a dash', () => {
  for (const text of [bytesText, countText, msText, percentText])
    assert.equal(text(undefined), '-');
});

test('numbers have two or three significant digits, and a unit that fits', () => {
  assert.deepEqual([0, 3, 3.21, 9.96, 12.3, 9999, 12_345, 1.5e6, 25e6].map(countText), [
    ...['0', '3', '3.2', '10', '12', '9999', '12k', '1500k', '25M'],
  ]);
  assert.deepEqual([0, 0.005, 0.125, 0.9994, 0.9996, 9.96, 250, 12_000, 600_000].map(msText), [
    ...['0ms', '5µs', '125µs', '999µs', '1.0ms', '10ms', '250ms', '12s', '10min'],
  ]);
  assert.deepEqual([0, 1.5 * mib, 99.6 * mib, 999.7 * mib, 4096 * mib].map(bytesText), [
    ...['0.0M', '1.5M', '100M', '1000M', '4.0G'],
  ]);
  assert.deepEqual([0, 0.126, 1, 12].map(percentText), ['0%', '13%', '100%', '1200%']);
});

test('a program is called by the end of its path', () => {
  assert.equal(shortTitle('/app/server.js'), 'server.js');
  assert.equal(shortTitle('C:\\app\\server.js'), 'server.js');
  assert.equal(shortTitle(''), '?');
});
