// Transactions at the limits of a thread: one that others conflict with all the time, and one that finds no stack.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { atomically, atomicallyWhen, check, type TVar, tmap, tvar } from '../../src/stm/public.js';
import { openPool } from '../pool/calls/ways.js';
import { sharingWays } from './sharing.js';

/** Attempts in vain until others may not commit, and some for those that are committing then. */
const mostAttempts = 32 + 16;

/** Changes variables as fast as it can until `over` is true. */
function disturb(variables: readonly TVar<number>[], over: TVar<boolean>): number {
  for (let turn = 0; !over.peek(); turn += 1) {
    atomically(() => variables[turn % variables.length]?.update((value) => value + 1));
  }
  return 0;
}

for (const way of sharingWays) {
  test(`a long transaction commits between short ones; ${way.name}`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const variables = Array.from({ length: 500 }, () => tvar(0));
    const [over, total] = [tvar(false), tvar(0)];
    const running = pool.run(disturb, variables, over);
    await atomicallyWhen(() => check((variables[0]?.get() ?? 0) > 0));
    let most = 0;
    let met = 0;
    for (let round = 0; (round < 200 || met === 0) && round < 5000; round += 1) {
      let attempts = 0;
      atomically(() => {
        attempts += 1;
        let sum = 0;
        // From the end and back: what was read first is changed meanwhile.
        for (let pass = 0; pass < 20; pass += 1) {
          for (const variable of variables) sum += variable.get();
        }
        total.set(sum);
      });
      most = Math.max(most, attempts);
      if (attempts > 1) met += 1;
    }
    atomically(() => over.set(true));
    assert.equal(await running, 0);
    t.diagnostic(`${met} transactions met others, ${most} attempts for the slowest`);
    assert.ok(met > 0, 'no transaction met another');
    assert.ok(most <= mostAttempts, `${most} attempts`);
  });
}

test('a stack that overflows near a transaction leaves all of it or nothing', () => {
  const [one, other] = [tvar(0), tvar(0)];
  const map = tmap<number, string>();
  let committed = 0;
  let overflows = 0;
  const down = (): void => {
    try {
      down();
    } catch {}
    try {
      atomically(() => {
        one.update((value) => value + 1);
        map.set(committed % 100, 'x'.repeat(100));
        other.update((value) => value + 1);
      });
      committed += 1;
    } catch (error) {
      assert.ok(error instanceof RangeError, String(error));
      overflows += 1;
    }
  };
  for (let round = 0; round < 3; round += 1) {
    try {
      down();
    } catch {} // the assertion found no stack
  }
  assert.ok(overflows > 0 && committed > 0);
  assert.equal(one.peek(), other.peek());
  assert.ok(one.peek() >= committed);
  atomically(() => one.set(-1));
  assert.equal(one.peek(), -1);
  assert.equal(map.size, Math.min(100, map.keys().length));
});
