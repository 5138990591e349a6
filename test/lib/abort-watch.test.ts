import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import fc from 'fast-check';
import { unwatchAbort, watchAbort } from '../../src/lib/index.js';

test('a signal has one listener for all who watch it, and none after the last', () => {
  const { signal } = new AbortController();
  const listeners = Array.from({ length: 100 }, () => () => {});
  for (const listener of listeners) watchAbort(signal, listener);
  assert.equal(getEventListeners(signal, 'abort').length, 1);
  for (const listener of listeners) unwatchAbort(signal, listener);
  assert.equal(getEventListeners(signal, 'abort').length, 0);
});

test('whoever watches at the abort hears it once, in order, and may leave or come meanwhile', () => {
  const step = fc.record({ who: fc.nat({ max: 5 }), watches: fc.boolean() });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), fc.nat({ max: 5 }), (steps, leaver) => {
      const controller = new AbortController();
      const { signal } = controller;
      const heard: number[] = [];
      const listeners = Array.from({ length: 6 }, (_, who) => (): void => {
        heard.push(who);
        unwatchAbort(signal, listeners[who] ?? (() => {}));
        if (who === leaver) watchAbort(signal, () => heard.push(-1)); // too late
      });
      const expected = new Set<number>();
      for (const { who, watches } of steps) {
        const listener = listeners[who] ?? (() => {});
        if (watches) {
          watchAbort(signal, listener);
          expected.add(who);
        } else {
          unwatchAbort(signal, listener);
          expected.delete(who);
        }
      }
      controller.abort();
      assert.deepEqual(heard, [...expected]);
    }),
  );
});
