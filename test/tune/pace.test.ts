import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lengthFor } from '../../src/tune/load/pace.js';
import { runsOfPass } from '../../src/tune/search/search.js';

test('a pass and 0.6 of another fit their time, where runs are not as short as can be', () => {
  for (const minutes of [5, 10, 30]) {
    for (const candidates of [1, 5, 14]) {
      const timeMs = minutes * 60_000;
      const { warmUpSeconds, seconds } = lengthFor(timeMs, candidates, 600);
      const passMs = runsOfPass(candidates) * (1000 * (warmUpSeconds + seconds) + 600);
      const passes = seconds === 1 ? 1 : 1.6;
      assert.ok(passMs * passes <= timeMs, `${candidates} in ${minutes} min: ${passMs} ms`);
      assert.ok(Number.isInteger(warmUpSeconds) && Number.isInteger(seconds));
      assert.ok(warmUpSeconds >= 1 && seconds >= warmUpSeconds);
    }
  }
});

test('more time makes runs longer, up to a limit', () => {
  const secondsIn = (minutes: number): number => lengthFor(minutes * 60_000, 14, 600).seconds;
  assert.ok(secondsIn(10) > secondsIn(5));
  assert.equal(secondsIn(0.1), 1);
  assert.equal(secondsIn(1000), 15);
});
