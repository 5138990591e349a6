import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { test } from 'node:test';
import { Refusals } from '../../../src/cluster/bus/refusals.js';

test('refusals are reported once for each node, and not without limit for invented ones', (t) => {
  const reports: string[] = [];
  const note = (message: unknown): void => {
    const { why }: { why?: string } = Object(message);
    reports.push(String(why));
  };
  subscribe('manycore:cluster:refused', note);
  t.after(() => unsubscribe('manycore:cluster:refused', note));
  t.mock.timers.enable({ apis: ['Date'] });
  const refusals = new Refusals();
  for (let at = 0; at < 3; at += 1) refusals.report('a', 'a is refused');
  assert.deepEqual(reports, ['a is refused']);
  for (let at = 0; at < 1000; at += 1) refusals.report(`invented ${at}`, `${at} is refused`);
  assert.equal(reports.length, 20);
  assert.equal(reports.at(-1), '18 is refused; others are not reported for a minute');
  t.mock.timers.tick(60_000);
  refusals.report('a', 'a is refused');
  assert.equal(reports.length, 21);
  assert.equal(reports.at(-1), 'a is refused');
});
