// Transactional memory without the native core.

import '../support/native-off.js';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  atomically,
  named,
  stmStats,
  tcounter,
  tlist,
  tmap,
  tqueue,
  tsortedMap,
  tvar,
} from '../../src/stm/index.js';

const makers: Readonly<Record<string, () => unknown>> = {
  tvar: () => tvar(1),
  tmap: () => tmap(),
  tsortedMap: () => tsortedMap(),
  tlist: () => tlist(),
  tqueue: () => tqueue(),
  tcounter: () => tcounter(),
  named: () => named('it', () => tvar(1)),
  atomically: () => atomically(() => 1),
};

for (const [name, make] of Object.entries(makers)) {
  test(`${name} is refused, with the way out`, () => {
    assert.throws(make, ({ code, message }) => {
      assert.equal(code, 'NATIVE_MISSING');
      assert.match(message, /MANYCORE_NATIVE/);
      return true;
    });
  });
}

test('statistics are zeros', () => assert.equal(stmStats().commits, 0));
