// Shared data of the place where the code runs: the cluster of the loop or the program, else this machine.

import {
  type DataSpace,
  localData,
  type SharedCounter,
  type SharedDataOptions,
  type SharedLock,
  type SharedMap,
} from '../shared-data/index.js';
import { loopData } from './current.js';
import { programCluster } from './default.js';

function dataHere(): DataSpace {
  return loopData() ?? programCluster()?.data ?? localData;
}

/**
 * Returns the map of this name. In a program that has joined a cluster, and in its loops, all programs of the cluster
 * share it; elsewhere all processes and loops of this program do. The place is decided here: join first. Throws
 * `OPTION_INVALID`, also on a cluster without a server, and `SHARED_DATA_TOO_LARGE`, as do `sharedLock` and
 * `sharedCounter`.
 */
export function sharedMap<Value = unknown>(
  name: string,
  options?: SharedDataOptions,
): SharedMap<Value> {
  return dataHere().map<Value>(name, options);
}

/** Returns the lock of this name, from the same place as `sharedMap`. */
export function sharedLock(name: string, options?: SharedDataOptions): SharedLock {
  return dataHere().lock(name, options);
}

/** Returns the counter of this name, from the same place as `sharedMap`. */
export function sharedCounter(name: string, options?: SharedDataOptions): SharedCounter {
  return dataHere().counter(name, options);
}
