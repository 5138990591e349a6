// Transactions that wait for a change, in one thread.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { hasCode } from '../../src/errors.js';
import {
  atomically,
  atomicallyWhen,
  check,
  free,
  orElse,
  retry,
  tvar,
} from '../../src/stm/public.js';
import { withDeadline } from '../support/index.js';

const deadlineMs = 20_000;

test('a variable that ends wakes those that wait for it, whatever comes to its place', async () => {
  const [other, gate, busy] = [tvar(0), tvar(false), tvar(0)];
  // In memory that nothing else has used. Versions above every number that may lie there later.
  for (let count = 0; count < 5000; count += 1) atomically(() => busy.set(count));
  const waits = atomicallyWhen(() => check(gate.get()));
  free(other);
  free(gate);
  for (let count = 0; count < 1000; count += 1) atomically(() => busy.set(count));
  const kept = ['abc', 'abcd', 'abcde'].map((text) => tvar(text));
  const isGone = (error: unknown) => hasCode(error, 'STM_GONE');
  await assert.rejects(withDeadline(waits, deadlineMs, 'the end of the wait'), isGone);
  assert.equal(kept[0]?.peek(), 'abc');
});

test('a transaction that retries runs again after a change of what it read', async () => {
  const [ready, other] = [tvar(false), tvar(0)];
  let runs = 0;
  const waits = atomicallyWhen(() => {
    runs += 1;
    check(ready.get());
    return other.get();
  });
  assert.equal(runs, 1);
  atomically(() => other.set(1));
  atomically(() => other.set(2));
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(runs, 1, 'it has not read what changed');
  atomically(() => ready.set(true));
  assert.equal(await withDeadline(waits, deadlineMs, 'the change'), 2);
});

test('one change wakes all that wait for it, and each of many waits for its own', async () => {
  const doors = Array.from({ length: 100 }, () => tvar(false));
  const gate = tvar(false);
  const all = doors.map((door, at) =>
    atomicallyWhen(() => {
      orElse(
        () => check(door.get()),
        () => check(gate.get()),
      );
      return at;
    }),
  );
  atomically(() => doors[42]?.set(true));
  assert.equal(await withDeadline(Promise.race(all), deadlineMs, 'one door'), 42);
  atomically(() => gate.set(true));
  assert.equal((await withDeadline(Promise.all(all), deadlineMs, 'the gate')).length, 100);
});

test('a wait ends with its signal, its time, and what the function throws', async () => {
  const variable = tvar(0);
  const controller = new AbortController();
  const aborted = atomicallyWhen(() => check(variable.get() > 0), { signal: controller.signal });
  controller.abort(new Error('enough'));
  await assert.rejects(aborted, (error) => hasCode(error, 'ABORTED'));
  await assert.rejects(
    atomicallyWhen(() => retry(), { timeoutMs: 1 }),
    (error) => hasCode(error, 'STM_TIMED_OUT') && error.name === 'TimeoutError',
  );
  const thrown = atomicallyWhen(() => {
    check(variable.get() > 0);
    throw new Error('woken');
  });
  atomically(() => variable.set(1));
  await assert.rejects(thrown, /woken/);
  await assert.rejects(
    atomicallyWhen(() => 1, { signal: AbortSignal.abort() }),
    (error) => hasCode(error, 'ABORTED'),
  );
});

test('options that cannot be are refused', async () => {
  const wrong: readonly object[] = [
    { timeoutMs: -1 },
    { timeoutMs: 'soon' },
    { signal: 1 },
    { signals: 1 },
  ];
  for (const options of wrong) {
    const call = Reflect.apply(atomicallyWhen, undefined, [() => 1, options]);
    await assert.rejects(call, (error) => hasCode(error, 'OPTION_INVALID'));
  }
});

test('a change between the run and the sleep is not lost', async () => {
  const variable = tvar(0);
  for (let round = 1; round <= 200; round += 1) {
    const waits = atomicallyWhen(() => check(variable.get() === round));
    if (round % 3 === 0) await delay(0);
    atomically(() => variable.set(round));
    await withDeadline(waits, deadlineMs, `round ${round}`);
  }
});

test('a wait that nothing can end is refused', async () => {
  const plain = { isReady: false };
  const waits = (): Promise<unknown> => atomicallyWhen(() => check(plain.isReady));
  await assert.rejects(waits(), (error) => hasCode(error, 'STM_WOULD_BLOCK'));
  const limited = atomicallyWhen(() => check(plain.isReady), { timeoutMs: 1 });
  await assert.rejects(limited, (error) => hasCode(error, 'STM_TIMED_OUT'));
});
