// Keeps `process.nextTick` fast in an event loop that was idle. Each call makes an object with symbols for keys.
// V8 adds those keys with a note of the object's shape, which it holds weakly. A collection while no such object
// is alive drops the shape, and the note then takes each later call to the runtime, for good
// (`Runtime_DefineKeyedOwnPropertyInLiteral`). One object that stays keeps the shape.

import { executionAsyncResource } from 'node:async_hooks';

/** Read by nobody. */
export let kept: object | undefined;

/** For the calling thread. */
export function keepTickShape(): void {
  process.nextTick(() => {
    kept = executionAsyncResource();
  });
}
