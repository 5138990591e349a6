// The file of the transactional memory of a process.

import assert from 'node:assert/strict';
import { closeSync, openSync } from 'node:fs';
import { test } from 'node:test';
import { requireNative } from '../../src/native.js';

test('a process has one memory: another descriptor is refused, and closed', () => {
  const native = requireNative();
  const own = native.spaceFd(2 ** 26);
  const other = openSync('/dev/null', 'r');
  assert.throws(() => native.adoptSpace(other), /has a transactional memory already/);
  const next = openSync('/dev/null', 'r');
  closeSync(next);
  assert.equal(next, other); // its number was free again
  assert.throws(() => native.adoptSpace(-1));
  assert.equal(native.spaceFd(2 ** 26), own);
});
