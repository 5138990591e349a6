import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Gate } from '../../src/worker/gate.js';

test('as many tasks go on as may; what waits begins in the order in which it came', () => {
  const gate = new Gate(2);
  const begun: string[] = [];
  const wait = (name: string) =>
    gate.wait(() => {
      begun.push(name);
      gate.enter();
    });
  gate.enter();
  assert.ok(gate.isOpen);
  gate.enter();
  assert.ok(!gate.isOpen);
  for (const name of ['first', 'second', 'third']) wait(name);
  gate.leave();
  assert.deepEqual(begun, ['first']);
  gate.leave();
  gate.leave();
  assert.deepEqual(begun, ['first', 'second', 'third']);
});

test('what comes while others wait does not go before them', () => {
  const gate = new Gate(1);
  gate.enter();
  let wasOpen: boolean | undefined;
  gate.wait(() => {
    wasOpen = gate.isOpen; // another one waits still
  });
  gate.wait(() => gate.enter());
  gate.leave();
  assert.equal(wasOpen, false);
  assert.ok(!gate.isOpen);
  gate.leave();
  assert.ok(gate.isOpen);
});

test('tasks that end in their call let all that wait begin', () => {
  const gate = new Gate(1);
  gate.enter();
  let begun = 0;
  for (let count = 0; count < 3; count += 1) {
    gate.wait(() => {
      begun += 1;
    });
  }
  gate.leave();
  assert.equal(begun, 3);
  assert.ok(gate.isOpen);
});
