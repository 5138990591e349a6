// Options that may differ between workers of one pool. Their function gets the place of the worker and not
// its number, which is never reused: a port or a database for each worker needs as many as the pool has
// workers.

import { isPromise } from 'node:util/types';
import { CodedError } from '../../errors.js';
import { invalid, messageOf } from '../../lib/index.js';

/** One value for all workers of a pool, or a function that returns it for each. */
export type ByPlace<T> = T | ((place: number) => T);

/** The lowest free place. */
export function freePlace(taken: readonly number[]): number {
  let place = 0;
  while (taken.includes(place)) place += 1;
  return place;
}

/**
 * Returns the option of the worker at `place`. Throws `OPTION_INVALID` when its function throws or returns
 * a wrong value.
 */
export function atPlace<T extends object>(
  name: string,
  option: ByPlace<T>,
  place: number,
  check: (name: string, value: T) => T,
): T {
  if (!isByPlace(option)) return option;
  const what = `${name} at place ${place}`;
  const value = called(what, () => option(place));
  if (isPromise(value)) {
    value.catch(() => {}); // it is refused, however it settles
    throw invalid(what, value, 'returned at once');
  }
  return check(what, value);
}

/** True: the option may differ between workers. */
export function isByPlace<T extends object>(option: ByPlace<T>): option is (place: number) => T {
  return typeof option === 'function';
}

function called<T>(what: string, make: () => T): T {
  try {
    return make();
  } catch (error) {
    throw new CodedError('OPTION_INVALID', `${what} threw: ${messageOf(error)}`, { cause: error });
  }
}
