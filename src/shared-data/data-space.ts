// Maps, locks and counters by name, over the stores of one place: this machine or a cluster.

import { type SharedCounter, StoredCounter } from './counter.js';
import { type SharedLock, StoredLock } from './lock.js';
import { type SharedMap, StoredMap } from './map.js';
import { checkName, fillDataOptions, type SharedDataOptions } from './options.js';
import type { Store } from './store.js';

/** A store of its own for each map; one for all locks, one for all counters. */
export type StoreName =
  | { readonly kind: 'map'; readonly map: string }
  | { readonly kind: 'locks' | 'counters' };

export class DataSpace {
  readonly #open: (name: StoreName, timeoutMs: number) => Store;

  /** `open` is called for each object, and may start nothing yet. */
  constructor(open: (name: StoreName, timeoutMs: number) => Store) {
    this.#open = open;
  }

  /** Throws `OPTION_INVALID`, `SHARED_DATA_TOO_LARGE`; so do the others. */
  map<Value>(name: string, options: SharedDataOptions = {}): SharedMap<Value> {
    const { timeoutMs } = fillDataOptions('a shared map', options);
    const store = this.#open({ kind: 'map', map: checkName(name) }, timeoutMs);
    return new StoredMap<Value>(name, store);
  }

  lock(name: string, options: SharedDataOptions = {}): SharedLock {
    const { timeoutMs } = fillDataOptions('a shared lock', options);
    return new StoredLock(checkName(name), this.#open({ kind: 'locks' }, timeoutMs));
  }

  counter(name: string, options: SharedDataOptions = {}): SharedCounter {
    const { timeoutMs } = fillDataOptions('a shared counter', options);
    return new StoredCounter(checkName(name), this.#open({ kind: 'counters' }, timeoutMs));
  }
}
