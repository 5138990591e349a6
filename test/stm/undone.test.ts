// Parts of transactions that are undone, and names of variables that have ended: what they leave behind is of no use,
// and does no harm to what comes to its place.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasCode } from '../../src/errors.js';
import {
  atomically,
  atomicallyWhen,
  check,
  free,
  nested,
  orElse,
  tlist,
  tmap,
  tvar,
} from '../../src/stm/public.js';

const coded = (code: Parameters<typeof hasCode>[1]) => (error: unknown) => hasCode(error, code);

test('a variable of a part that was undone is gone, and what comes to its place is another one', async () => {
  const parts = [
    () => tvar(1),
    () => tvar('a text'),
    () => tmap<string, number>(),
    () => tlist<number>(),
  ];
  for (const make of parts) {
    let left: unknown;
    const undone = () => {
      left = make();
      throw new Error('undone');
    };
    const use = () => {
      assert.ok(typeof left === 'object' && left !== null);
      if ('peek' in left && typeof left.peek === 'function') return left.peek();
      if ('keys' in left && typeof left.keys === 'function') return left.keys();
    };
    atomically(() => {
      assert.throws(() => nested(undone), { message: 'undone' });
      const next = tvar([1]);
      assert.throws(use, coded('STM_GONE'));
      assert.deepEqual(next.get(), [1]);
    });
    assert.throws(use, coded('STM_GONE'));
    assert.throws(() => atomically(undone), { message: 'undone' });
    const next = tvar([1]);
    assert.throws(use, coded('STM_GONE'));
    assert.deepEqual(next.peek(), [1]);
  }
});

test('a transaction that waits is not kept awake by variables that a part of it made', async () => {
  const flag = tvar(false);
  let attempts = 0;
  const waits = atomicallyWhen(
    () => {
      attempts += 1;
      const part = () => {
        const [one, other] = [tvar(0), tvar(0)];
        one.get();
        other.get();
        throw new Error('undone');
      };
      assert.throws(() => nested(part), { message: 'undone' });
      tvar([1]);
      check(flag.get());
    },
    { timeoutMs: 100 },
  );
  await assert.rejects(waits, coded('STM_TIMED_OUT'));
  assert.equal(attempts, 1);
});

test('a name of a variable that has ended is no second handle of what is there now', () => {
  const [stale, busy, old] = [tvar<unknown>(0), tvar(0), tvar(1)];
  atomically(() => stale.set([old]));
  free(old);
  for (let count = 0; count < 1000; count += 1) atomically(() => busy.set(count));
  const fresh = Array.from({ length: 50 }, () => tvar('a'));
  stale.peek();
  const holder = tvar<unknown>(0);
  for (const each of fresh) {
    atomically(() => holder.set([each]));
    assert.deepEqual(holder.peek(), [each]);
    assert.equal(Object(holder.peek())[0], each);
  }
});

test('a part that returns a promise is undone', () => {
  const variable = tvar(0);
  const part = async () => variable.set(1);
  for (const call of [nested, orElse, atomically]) {
    const run = () => atomically(() => Reflect.apply(call, undefined, [part]));
    assert.throws(run, coded('STM_ASYNC'));
    assert.equal(variable.peek(), 0);
  }
  atomically(() => {
    for (const call of [nested, orElse]) {
      assert.throws(() => Reflect.apply(call, undefined, [part]), coded('STM_ASYNC'));
    }
    assert.equal(variable.get(), 0);
  });
});
