// A value that each host makes for itself, at first use: connections, caches, handles. The function
// that gives it travels; the value never does.

import { CodedError } from '../errors.js';
import type { AnyFunction } from './types.js';

const factories = new WeakMap<AnyFunction, AnyFunction>();

/**
 * Returns a function that gives the same value at every call in one host, made by `factory` at the
 * first. In the caller's own process it is made once there too. A factory that throws is asked again
 * at the next call.
 */
export function perHost<T>(factory: () => T): () => T {
  if (typeof factory !== 'function') {
    throw new CodedError('OPTION_INVALID', `perHost() takes a function, not ${typeof factory}`);
  }
  let made: { readonly value: T } | undefined;
  const give = (): T => {
    made ??= { value: factory() };
    return made.value;
  };
  factories.set(give, factory);
  return give;
}

/** The factory behind a function that `perHost` returned. */
export function perHostFactory(fn: AnyFunction): AnyFunction | undefined {
  return factories.get(fn);
}
