// The targets of the package's `deploy` and `bus` in this thread: in a unit's code those of the unit, else
// those of the loop.

import { AsyncLocalStorage } from 'node:async_hooks';
import { type Bus, type EventBus, Scope, type ScopedBus } from '../bus/index.js';
import type { DataSpace } from '../shared-data/index.js';
import type { Instance } from './unit/instance.js';

const running = new AsyncLocalStorage<Instance>();

/** Calls `work` as code of the instance. */
export function runAs<Result>(instance: Instance, work: () => Result): Result {
  return running.run(instance, work);
}

/** Returns the instance whose code is running, as far as that can be followed. */
export function currentInstance(): Instance | undefined {
  return running.getStore();
}

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
  return running.getStore()?.bus ?? shared?.bus;
}

let sharedData: DataSpace | undefined;

export function setLoopData(data: DataSpace): void {
  sharedData = data;
}

/** Returns the shared data of the cluster that this loop is in; `undefined`: it is in none. */
export function loopData(): DataSpace | undefined {
  return sharedData;
}
