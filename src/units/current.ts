// What `deploy` and `bus` of the package mean in this thread: in a loop, those of the loop.

import { type Bus, type EventBus, ScopedBus } from '../bus/index.js';
import { currentInstance } from './instance.js';

let ofLoop: EventBus | undefined;
let shared: ScopedBus | undefined;

export function setLoopBus(bus: EventBus): void {
  ofLoop = bus;
  shared = new ScopedBus(bus);
}

/** The raw bus of the loop; `undefined` where this is no loop. */
export function loopBus(): Bus | undefined {
  return ofLoop;
}

/** For programs in a loop: that of the unit whose code this is, else the loop's. */
export function programBus(): Bus | undefined {
  return currentInstance()?.bus ?? shared;
}
