// A value that each worker makes for itself, at first use: connections, caches, handles. The function that
// returns it travels; the value never does.

import { isPromise } from 'node:util/types';
import { CodedError } from '../../errors.js';
import type { AnyFunction } from '../types.js';

const factories = new WeakMap<AnyFunction, AnyFunction>();
/** Values made here, in order; a promise counts as its value. */
const madeHere: unknown[] = [];

/**
 * Returns a function that returns the same value at every call in one worker, made by `factory` at the first.
 * In the caller's own process it is made once there too. A factory that throws, or whose promise is rejected,
 * is called again at the next call. A value with `Symbol.asyncDispose` or `Symbol.dispose` is disposed of
 * when its worker ends in order, the last one first. In the caller's own process that is up to the caller.
 */
export function perWorker<T>(factory: () => T): () => T {
  if (typeof factory !== 'function') {
    throw new CodedError('OPTION_INVALID', `perWorker() takes a function, not ${typeof factory}`);
  }
  let made: { readonly value: T } | undefined;
  const give = (): T => {
    if (made === undefined) {
      const first = { value: factory() };
      made = first;
      madeHere.push(first.value);
      if (isPromise(first.value)) {
        first.value.catch(() => {
          made = undefined;
          const at = madeHere.indexOf(first.value);
          if (at >= 0) madeHere.splice(at, 1);
        });
      }
    }
    return made.value;
  };
  factories.set(give, factory);
  return give;
}

/** The factory behind a function that `perWorker` returned. */
export function perWorkerFactory(fn: AnyFunction): AnyFunction | undefined {
  return factories.get(fn);
}

/**
 * Disposes of everything that was made here, one after the other. Rejects at the end with an error that one
 * of them threw.
 */
export async function disposePerWorker(): Promise<void> {
  const errors: unknown[] = [];
  for (const value of madeHere.splice(0).reverse()) {
    let isMade = false;
    try {
      const made = await value;
      isMade = true;
      await dispose(made);
    } catch (error) {
      if (isMade) errors.push(error);
    }
  }
  if (errors.length > 0) throw errors[0];
}

async function dispose(value: unknown): Promise<void> {
  if (typeof value !== 'object' || value === null) return;
  const method: unknown =
    Reflect.get(value, Symbol.asyncDispose) ?? Reflect.get(value, Symbol.dispose);
  if (typeof method === 'function') await Reflect.apply(method, value, []);
}
