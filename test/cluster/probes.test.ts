// Who is asked whether he is there, and when he counts as gone; the clock is the test's.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Probes } from '../../src/cluster/probes.js';

/** `asked`: the numbers, by address, as they were asked last. */
function openProbes(t: TestContext) {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const asked = new Map<string, number>();
  let last = 0;
  const probes = new Probes({
    newNumber: () => {
      last += 1;
      return last;
    },
    ask: (address, number) => {
      asked.set(address, number);
      return true;
    },
  });
  t.after(() => probes.close());
  const gone: string[] = [];
  const watch = (address: string) => probes.watch(address, () => void gone.push(address));
  const ask = (): void => t.mock.timers.tick(2000);
  const numberOf = (address: string): number => asked.get(address) ?? assert.fail();
  return { probes, asked, gone, watch, ask, numberOf };
}

test('who is missed two times in a row is gone, and the others are not', (t) => {
  const { probes, gone, watch, ask, numberOf } = openProbes(t);
  for (const address of ['a', 'b', 'c']) watch(address);
  ask();
  assert.equal(probes.missed(numberOf('a')), true);
  assert.equal(probes.missed(numberOf('b')), true);
  probes.heard(numberOf('b'));
  ask();
  for (const address of ['a', 'b']) assert.equal(probes.missed(numberOf(address)), true);
  assert.deepEqual(gone, ['a']);
  assert.equal(probes.missed(numberOf('a')), false);
});

test('who answers nothing for long is gone, and who answers is not', (t) => {
  const { probes, gone, watch, ask, numberOf } = openProbes(t);
  for (const address of ['mute', 'there']) watch(address);
  for (let times = 0; times < 11; times += 1) {
    ask();
    probes.heard(numberOf('there'));
  }
  assert.deepEqual(gone, ['mute']);
});

test('what is not watched any more is not asked, and its number is nobody’s', (t) => {
  const { probes, asked, gone, watch, ask, numberOf } = openProbes(t);
  const [first, second] = [watch('a'), watch('a')];
  ask();
  const number = numberOf('a');
  first();
  assert.equal(probes.missed(number), true); // the other watches
  second();
  second();
  assert.equal(probes.missed(number), false);
  asked.clear();
  ask();
  assert.deepEqual([asked.size, gone], [0, []]);
});

test('an address that was given up and is watched anew has a number of its own', (t) => {
  const { probes, gone, watch, ask, numberOf } = openProbes(t);
  const unwatch = watch('a');
  ask();
  const before = numberOf('a');
  for (const _ of [1, 2]) probes.missed(before);
  assert.deepEqual(gone, ['a']);
  watch('a');
  unwatch();
  ask();
  assert.notEqual(numberOf('a'), before);
  probes.loseAll();
  assert.deepEqual(gone, ['a', 'a']);
});
