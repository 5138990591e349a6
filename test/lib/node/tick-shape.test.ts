import assert from 'node:assert/strict';
import { AsyncLocalStorage, createHook } from 'node:async_hooks';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { keepTickShape } from '../../../src/lib/index.js';

function collector(): () => void {
  setFlagsFromString('--expose-gc');
  const collect: () => void = runInNewContext('gc');
  return collect;
}

/** Objects of `process.nextTick` that are made while `act` runs. */
function ticksOf(act: () => void): WeakRef<object>[] {
  const ticks: WeakRef<object>[] = [];
  const hook = createHook({
    init: (_id, type, _trigger, resource: object) => {
      if (type === 'TickObject') ticks.push(new WeakRef(resource));
    },
  }).enable();
  act();
  hook.disable();
  return ticks;
}

const alive = (refs: readonly WeakRef<object>[]): number =>
  refs.filter((ref) => ref.deref() !== undefined).length;

test('one object of nextTick outlives collections, without the context of its caller', async () => {
  const collect = collector();
  const storage = new AsyncLocalStorage<object>();
  let store: WeakRef<object> | undefined;
  const others = ticksOf(() => process.nextTick(() => {}));
  const kept = ticksOf(() => {
    const value = {};
    store = new WeakRef(value);
    storage.run(value, keepTickShape);
  });
  for (let round = 0; round < 3; round += 1) {
    await turn();
    collect();
  }
  assert.equal(alive(others), 0);
  assert.equal(alive(kept), 1);
  assert.equal(store?.deref(), undefined);

  const again = ticksOf(keepTickShape);
  assert.equal(again.length, 0, 'a second one is not needed');
});
