// A value that each host makes for itself, at first use: connections, caches, handles. The function
// that gives it travels; the value never does.

import { CodedError } from '../errors.js';
import type { AnyFunction } from './types.js';

const factories = new WeakMap<AnyFunction, AnyFunction>();
/** What was made here, in order, a promise of it included. */
const madeHere: unknown[] = [];

/**
 * Returns a function that gives the same value at every call in one host, made by `factory` at the
 * first. In the caller's own process it is made once there too. A factory that throws is asked again
 * at the next call. A value with `Symbol.asyncDispose` or `Symbol.dispose` is disposed of when its host leaves in
 * order, the last one first; in the caller's own process that is up to the caller.
 */
export function perHost<T>(factory: () => T): () => T {
  if (typeof factory !== 'function') {
    throw new CodedError('OPTION_INVALID', `perHost() takes a function, not ${typeof factory}`);
  }
  let made: { readonly value: T } | undefined;
  const give = (): T => {
    if (made === undefined) {
      made = { value: factory() };
      madeHere.push(made.value);
    }
    return made.value;
  };
  factories.set(give, factory);
  return give;
}

/** The factory behind a function that `perHost` returned. */
export function perHostFactory(fn: AnyFunction): AnyFunction | undefined {
  return factories.get(fn);
}

/** Disposes of everything that was made here, one after the other, whatever one of them throws. */
export async function disposePerHost(): Promise<void> {
  for (const value of madeHere.splice(0).reverse()) {
    try {
      await dispose(await value);
    } catch {
      // The host leaves all the same, and nobody waits for this any more.
    }
  }
}

async function dispose(value: unknown): Promise<void> {
  if (typeof value !== 'object' || value === null) return;
  const method: unknown =
    Reflect.get(value, Symbol.asyncDispose) ?? Reflect.get(value, Symbol.dispose);
  if (typeof method === 'function') await Reflect.apply(method, value, []);
}
