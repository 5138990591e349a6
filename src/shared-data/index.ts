// Maps, locks and counters that programs share, over this machine's memory or over what a cluster stores.

export type { SharedCounter } from './counter.js';
export { DataSpace, type StoreName } from './data-space.js';
export { timedOut, tooLarge } from './errors.js';
export type { Lease } from './lease.js';
export { localData } from './local-store.js';
export type { SharedLock } from './lock.js';
export type { SharedMap, SharedMapChange, SharedMapEntry } from './map.js';
export type { AcquireOptions, SharedDataOptions, SharedMapWatchOptions } from './options.js';
export { absent, type Store, type StoredChange, type StoredEntry } from './store.js';
