// The targets of the package's `deploy` and `bus` in this thread: in a loop, those of the loop.

import { type Bus, type EventBus, Scope, type ScopedBus } from '../bus/index.js';
import { currentInstance } from './unit/instance.js';

let ofLoop: EventBus | undefined;
let shared: Scope | undefined;

export function setLoopBus(bus: EventBus): void {
  ofLoop = bus;
  shared = new Scope(bus);
}

/** Returns the raw bus of the loop; `undefined` outside of loops. */
export function loopBus(): Bus | undefined {
  return ofLoop;
}

/** Returns the bus for programs in a loop: that of the unit whose code is running, else the loop's. */
export function programBus(): ScopedBus | undefined {
  return currentInstance()?.bus ?? shared?.bus;
}
