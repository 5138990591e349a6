import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Patience, patienceDefaults } from '../../../src/lib/index.js';

const options = { firstDelayMs: 10, maxDelayMs: 50, patienceMs: 1_000, quietMs: 500 };

/** Failure at `nowMs` of a start right after the previous failure. */
const failing = (nowMs: number, signature = 'same', wavesToBeSure = Infinity) => ({
  nowMs,
  beganMs: nowMs - 1,
  signature,
  wavesToBeSure,
});

test('delays double from wave to wave, up to the longest', () => {
  const patience = new Patience(options);
  const delays = [10, 20, 30, 40, 50].map((nowMs) => patience.failed(failing(nowMs)).delayMs);
  assert.deepEqual(delays, [10, 20, 40, 50, 50]);
});

test('workers that were started together are one wave, however many fail', () => {
  const patience = new Patience(options);
  const verdicts = Array.from({ length: 64 }, (_, at) =>
    patience.failed({ ...failing(100 + at), beganMs: 90 }),
  );
  assert.deepEqual(
    verdicts.map(({ isNewWave }) => isNewWave),
    [true, ...Array(63).fill(false)],
  );
  assert.ok(verdicts.every(({ next, delayMs }) => next === 'again' && delayMs === 10));
  assert.equal(patience.wavesInRow, 1);
});

test('a row ends by time, counted from the start of what failed first', () => {
  const patience = new Patience(options);
  assert.equal(patience.failed({ ...failing(900), beganMs: 0 }).next, 'again');
  assert.equal(patience.failed(failing(999)).next, 'again');
  assert.equal(patience.failed(failing(1_000)).next, 'late');
});

test('one failure that took all the time is enough', () => {
  assert.equal(new Patience(options).failed({ ...failing(1_000), beganMs: 0 }).next, 'late');
});

test('a start long after the last failure begins a row of its own', () => {
  const patience = new Patience(options);
  patience.failed(failing(10));
  patience.failed(failing(400));
  assert.equal(patience.failed({ ...failing(2_000), beganMs: 1_000 }).delayMs, 10);
  assert.equal(patience.wavesInRow, 1);
});

test('a cause that stays is sure after as many waves in a row as it needs, and not before', () => {
  for (const needed of [1, 2, 3]) {
    const patience = new Patience(options);
    const nexts = Array.from(
      { length: needed },
      (_, at) => patience.failed(failing(10 + 10 * at, 'same', needed)).next,
    );
    assert.deepEqual(nexts, [...Array(needed - 1).fill('again'), 'lasting']);
  }
});

test('another cause in between begins the count anew', () => {
  const patience = new Patience(options);
  const nexts = ['a', 'b', 'a', 'a'].map(
    (signature, at) => patience.failed(failing(10 + 10 * at, signature, 2)).next,
  );
  assert.deepEqual(nexts, ['again', 'again', 'again', 'lasting']);
});

test('after the end of a row the rest of its last wave does not end the next', () => {
  const patience = new Patience(options);
  patience.failed({ ...failing(2_000), beganMs: 0 });
  patience.reset();
  const rest = patience.failed({ ...failing(2_010), beganMs: 0 });
  assert.deepEqual(rest, { next: 'again', delayMs: 10, isNewWave: false });
});

test('for any failures: late only after the time, sure only after enough, delays within limits', () => {
  const step = fc.record({
    pauseMs: fc.integer({ min: 1, max: 300 }),
    tookMs: fc.integer({ min: 0, max: 400 }),
    signature: fc.constantFrom('a', 'b'),
    wavesToBeSure: fc.constantFrom(1, 2, 3, Infinity),
    works: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const patience = new Patience(options);
      let nowMs = 0;
      for (const { pauseMs, tookMs, signature, wavesToBeSure, works } of steps) {
        const beganMs = nowMs + pauseMs;
        nowMs = beganMs + tookMs;
        if (works) {
          patience.reset();
          continue;
        }
        const failure = { nowMs, beganMs, signature, wavesToBeSure };
        const { next, delayMs, isNewWave } = patience.failed(failure);
        assert.ok(isNewWave, 'each was started after the one before had failed');
        assert.ok(delayMs >= options.firstDelayMs && delayMs <= options.maxDelayMs);
        if (wavesToBeSure === 1) assert.equal(next, 'lasting');
        if (next === 'lasting') assert.ok(wavesToBeSure <= patience.wavesInRow);
        if (next === 'late') assert.ok(nowMs >= options.patienceMs);
        if (next !== 'again') patience.reset();
      }
    }),
  );
});

test('by default a row has half a minute', () => {
  assert.equal(patienceDefaults.patienceMs, 30_000);
});
