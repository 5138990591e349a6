// The targets of the package's `deploy` and `bus` in this thread: in a loop, those of the loop.

import { type Bus, type EventBus, ScopedBus } from '../bus/index.js';
import { currentInstance } from './unit/instance.js';

let ofLoop: EventBus | undefined;
let shared: ScopedBus | undefined;

export function setLoopBus(bus: EventBus): void {
  ofLoop = bus;
  shared = new ScopedBus(bus);
}

/** Returns the raw bus of the loop; `undefined` outside of loops. */
export function loopBus(): Bus | undefined {
  return ofLoop;
}

/** Returns the bus for programs in a loop: that of the unit whose code is running, else the loop's. */
export function programBus(): Bus | undefined {
  return currentInstance()?.bus ?? shared;
}
