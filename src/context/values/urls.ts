// A URL and its `searchParams` are two objects with one state: each changes with the other.

import { descriptorOf } from '../../lib/index.js';

const read = descriptorOf(URL.prototype, 'searchParams')?.get;

/** The URLSearchParams of a URL; `undefined`: `value` is none, or of a class of its own. */
export function paramsOf(value: object): object | undefined {
  if (Object.getPrototypeOf(value) !== URL.prototype || read === undefined) return undefined;
  try {
    const params: unknown = Reflect.apply(read, value, []);
    return typeof params === 'object' && params !== null ? params : undefined;
  } catch {
    return undefined; // an object that only inherits
  }
}
