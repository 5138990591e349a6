// Probes, and when an end counts as gone; the clock is the test's.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Probes } from '../../../src/cluster/bus/probes.js';

/** `probed`: numbers by address of the last probes. */
function openProbes(t: TestContext) {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const probed = new Map<string, number>();
  let last = 0;
  const probes = new Probes({
    newNumber: () => {
      last += 1;
      return last;
    },
    probe: (address, number) => {
      probed.set(address, number);
      return true;
    },
  });
  t.after(() => probes.close());
  const gone: string[] = [];
  const watch = (address: string) => probes.watch(address, () => void gone.push(address));
  const probeAll = (): void => t.mock.timers.tick(2000);
  const numberOf = (address: string): number => probed.get(address) ?? assert.fail();
  return { probes, probed, gone, watch, probeAll, numberOf };
}

test('an end that is missed two times in a row is gone, and the others are not', (t) => {
  const { probes, gone, watch, probeAll, numberOf } = openProbes(t);
  for (const address of ['a', 'b', 'c']) watch(address);
  probeAll();
  assert.equal(probes.missed(numberOf('a')), true);
  assert.equal(probes.missed(numberOf('b')), true);
  probes.answered(numberOf('b'));
  probeAll();
  for (const address of ['a', 'b']) assert.equal(probes.missed(numberOf(address)), true);
  assert.deepEqual(gone, ['a']);
  assert.equal(probes.missed(numberOf('a')), false);
});

test('an end without an answer for long is gone, and one that answers is not', (t) => {
  const { probes, gone, watch, probeAll, numberOf } = openProbes(t);
  for (const address of ['mute', 'there']) watch(address);
  for (let times = 0; times < 11; times += 1) {
    probeAll();
    probes.answered(numberOf('there'));
  }
  assert.deepEqual(gone, ['mute']);
});

test('an unwatched address is not probed, and its number is free', (t) => {
  const { probes, probed, gone, watch, probeAll, numberOf } = openProbes(t);
  const [first, second] = [watch('a'), watch('a')];
  probeAll();
  const number = numberOf('a');
  first();
  assert.equal(probes.missed(number), true); // the other watches
  second();
  second();
  assert.equal(probes.missed(number), false);
  probed.clear();
  probeAll();
  assert.deepEqual([probed.size, gone], [0, []]);
});

test('an address that was given up and is watched anew has a number of its own', (t) => {
  const { probes, gone, watch, probeAll, numberOf } = openProbes(t);
  const unwatch = watch('a');
  probeAll();
  const before = numberOf('a');
  for (const _ of [1, 2]) probes.missed(before);
  assert.deepEqual(gone, ['a']);
  watch('a');
  unwatch();
  probeAll();
  assert.notEqual(numberOf('a'), before);
  probes.loseAll();
  assert.deepEqual(gone, ['a', 'a']);
});
