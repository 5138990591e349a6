import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import fc from 'fast-check';
import { unwatchAbort, watchAbort } from '../../src/lib/index.js';

test('a signal has one listener for all watches, and none after the last', () => {
  const { signal } = new AbortController();
  const listeners = Array.from({ length: 100 }, () => () => {});
  for (const listener of listeners) watchAbort(signal, listener);
  assert.equal(getEventListeners(signal, 'abort').length, 1);
  for (const listener of listeners) unwatchAbort(signal, listener);
  assert.equal(getEventListeners(signal, 'abort').length, 0);
});

test('an abort calls each listener once, in order, and listeners may leave or come meanwhile', () => {
  const step = fc.record({ index: fc.nat({ max: 5 }), watches: fc.boolean() });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), fc.nat({ max: 5 }), (steps, leaver) => {
      const controller = new AbortController();
      const { signal } = controller;
      const called: number[] = [];
      const listeners = Array.from({ length: 6 }, (_, index) => (): void => {
        called.push(index);
        unwatchAbort(signal, listeners[index] ?? (() => {}));
        if (index === leaver) watchAbort(signal, () => called.push(-1)); // too late
      });
      const expected = new Set<number>();
      for (const { index, watches } of steps) {
        const listener = listeners[index] ?? (() => {});
        if (watches) {
          watchAbort(signal, listener);
          expected.add(index);
        } else {
          unwatchAbort(signal, listener);
          expected.delete(index);
        }
      }
      controller.abort();
      assert.deepEqual(called, [...expected]);
    }),
  );
});
