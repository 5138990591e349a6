// AsyncLocalStorage across workers. A storage that a function captured is found by itself; one that lives in
// an imported module must be announced with propagate(), in that module, because nothing in Node lists the
// storages. In the worker the function runs inside `storage.run(store)`.

import type { AsyncLocalStorage } from 'node:async_hooks';
import { CodedError } from '../../errors.js';
import { defineOwn } from '../../lib/index.js';
import type { AnyFunction } from '../types.js';

/** A storage with its key, if it was announced, and its store. */
export type ActiveStore = readonly [
  storage: AsyncLocalStorage<unknown>,
  key: string | undefined,
  store: unknown,
];
export type ActiveStores = readonly ActiveStore[];

const registered = new Map<string, AsyncLocalStorage<unknown>>();
let anonymousCount = 0;

/**
 * Lets the store of `storage` travel with every call. Call it in the module that makes the storage: the
 * worker imports that module too, and so has the storage under the same key. Without a `key`, the order of
 * such calls is the key: give one when modules may load in another order. Returns `storage`.
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

/**
 * The storages that hold something now: announced ones and those of `captured`. One that is both is listed
 * twice: this side cannot see whether the worker has imported the module that announces it.
 */
export function activeStores(captured: readonly AsyncLocalStorage<unknown>[]): ActiveStores {
  const active: ActiveStore[] = [];
  const add = (storage: AsyncLocalStorage<unknown>, key: string | undefined): void => {
    const store = storage.getStore();
    if (store !== undefined) active.push([storage, key, store]);
  };
  for (const [key, storage] of registered) add(storage, key);
  for (const storage of captured) add(storage, undefined);
  return active;
}

/** Functions that came with stores, in which they run here, and their inner functions. */
const arrived = new WeakMap<AnyFunction, { inner: AnyFunction; store: ActiveStore }>();

/** `inner` as it runs in `store`. It has the name of `inner`, and is called by the storage directly. */
export function runningIn(
  [storage, key, store]: ActiveStore,
  inner: (...args: unknown[]) => unknown,
): (...args: unknown[]) => unknown {
  const run = (...args: unknown[]): unknown => storage.run(store, inner, ...args);
  defineOwn(run, 'name', { value: inner.name });
  arrived.set(run, { inner, store: [storage, key, store] });
  return run;
}

/**
 * The stores that came with a function, which it keeps when it is sent on; those of the sender do not count.
 */
export function arrivedStores(
  fn: AnyFunction,
): { inner: AnyFunction; stores: ActiveStores } | undefined {
  const stores: ActiveStore[] = [];
  let inner = fn;
  for (let found = arrived.get(inner); found !== undefined; found = arrived.get(inner)) {
    stores.unshift(found.store);
    inner = found.inner;
  }
  return stores.length === 0 ? undefined : { inner, stores };
}
