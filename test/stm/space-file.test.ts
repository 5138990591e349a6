// The transactional memory of a process: its file, and limits that are the same without the native core.

import assert from 'node:assert/strict';
import { closeSync, openSync } from 'node:fs';
import { test } from 'node:test';
import { requireNative } from '../../src/native.js';
import { openSpace } from '../../src/stm/space.js';
import { ThreadTransactions } from '../../src/stm/threads/transactions.js';

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

test('a transaction of threads without the core may read and write as much', () => {
  const space = openSpace();
  const threads = new ThreadTransactions(
    new Int32Array(new SharedArrayBuffer(2 ** 24)),
    1,
    () => {},
  );
  const limits = threads.places().slice(-4);
  assert.deepEqual(limits, space.native.places().slice(-4));
  const { deskReads, maxReads, deskWrites, maxWrites } = space.at;
  assert.deepEqual(limits, [deskReads, maxReads, deskWrites, maxWrites]);
  assert.equal(threads.desk().byteLength, space.desk.byteLength);
  threads.close();
  space.close();
});
