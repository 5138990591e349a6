// Bytes of a peer: the parsers of the bus accept only what a bus sends.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseMessage } from '../../src/bus/index.js';

test('headers of a peer are texts or lists of one or more texts', () => {
  const right = { one: 'a', several: ['b', 'c'] };
  assert.deepEqual(parseMessage([1, right]), [1, right]);
  for (const wrong of [1, null, {}, [], ['a', 1], [['a']], Array(1)]) {
    assert.throws(() => parseMessage([1, { a: wrong }]), { code: 'TRANSFER_CORRUPT' });
  }
});
