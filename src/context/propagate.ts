// AsyncLocalStorage across hosts. A storage that a function captured is found by itself; one that
// lives in an imported module must be announced with propagate(), in that module, because nothing
// in Node lists the storages there are. In the host the function runs inside `storage.run(store)`.

import type { AsyncLocalStorage } from 'node:async_hooks';
import { CodedError } from '../errors.js';

/** A storage and, when it was announced, its key. */
export type ActiveStores = readonly (readonly [AsyncLocalStorage<unknown>, string | undefined])[];

const registered = new Map<string, AsyncLocalStorage<unknown>>();
let anonymousCount = 0;

/**
 * Lets the store of `storage` travel with every call. Call it in the module that makes the storage:
 * the host imports that module too, and so knows the storage by the same key. Without a `key`, the
 * order of such calls is the key: give one when modules may load in another order. Returns `storage`.
 */
export function propagate<T>(storage: AsyncLocalStorage<T>, key?: string): AsyncLocalStorage<T> {
  if (typeof storage?.getStore !== 'function' || typeof storage.run !== 'function') {
    throw new CodedError('OPTION_INVALID', 'propagate() takes an AsyncLocalStorage');
  }
  if (key !== undefined && (typeof key !== 'string' || key === '')) {
    throw new CodedError('OPTION_INVALID', 'the key of propagate() is a string that is not empty');
  }
  for (const known of registered.values()) if (known === storage) return storage;
  anonymousCount += 1;
  registered.set(key ?? `#${anonymousCount}`, storage);
  return storage;
}

export function hasRegistered(): boolean {
  return registered.size > 0;
}

export function registeredStorage(key: string): AsyncLocalStorage<unknown> | undefined {
  return registered.get(key);
}

export function storeOf(storage: AsyncLocalStorage<unknown>): unknown {
  return storage.getStore();
}

/**
 * The storages that hold something now: announced ones and those of `captured`. One that is both is
 * there twice: whether the host has imported the module that announces it is not known here.
 */
export function activeStores(captured: readonly AsyncLocalStorage<unknown>[]): ActiveStores {
  const active: (readonly [AsyncLocalStorage<unknown>, string | undefined])[] = [];
  for (const [key, storage] of registered) {
    if (storage.getStore() !== undefined) active.push([storage, key]);
  }
  for (const storage of captured) {
    if (storage.getStore() !== undefined) active.push([storage, undefined]);
  }
  return active;
}
