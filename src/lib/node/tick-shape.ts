// Keeps `process.nextTick` fast. Each call of it makes an object with symbols for keys, and V8 notes at that place
// in Node's code, weakly, which shape such an object has. A collection while none is alive drops the shape: from
// then on each call adds its keys in V8's runtime (`Runtime_DefineKeyedOwnPropertyInLiteral`), for good. It takes
// one collection in a quiet moment, as V8 makes it in idle programs. One object that stays keeps the shape.
// Measured: bench/results/next-tick.json.

import { executionAsyncResource } from 'node:async_hooks';
import { nextTick } from './timers.js';

let kept: object | undefined;

/** For the calling thread. Further calls do nothing. */
export function keepTickShape(): void {
  if (kept !== undefined) return;
  nextTick(() => {
    kept ??= withoutContext(executionAsyncResource());
  });
}

/** Removes what belongs to the caller's `AsyncLocalStorage`. Numbers stay: another kind of value is another shape. */
function withoutContext(tick: object): object {
  for (const key of Object.getOwnPropertySymbols(tick)) {
    if (typeof Reflect.get(tick, key) === 'object') Reflect.set(tick, key, undefined);
  }
  return tick;
}
