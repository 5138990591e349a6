// The methods of an object that a service offers: functions that it has or inherits. Names that the language
// or a promise gives a meaning to are none, so a proxy may answer every other name with a request.

import { invalid } from '../../lib/index.js';

/**
 * The methods of a service `T`, each of which returns a promise of what the service's returns. Without names of
 * every object, and without those that `await` and `JSON.stringify` call.
 */
export type ServiceProxy<T> = {
  readonly [Name in keyof T as Name extends
    | 'constructor'
    | 'hasOwnProperty'
    | 'isPrototypeOf'
    | 'propertyIsEnumerable'
    | 'then'
    | 'toJSON'
    | 'toLocaleString'
    | 'toString'
    | 'valueOf'
    | `_${string}`
    | `#${string}`
    ? never
    : NonNullable<T[Name]> extends (...args: never[]) => unknown
      ? Name & string
      : never]-?: NonNullable<T[Name]> extends (...args: infer Args) => infer Result
    ? (...args: Args) => Promise<Awaited<Result>>
    : never;
};

const hiddenNames: ReadonlySet<string> = new Set([
  ...Object.getOwnPropertyNames(Object.prototype),
  'then',
  'toJSON',
]);

export function isMethodName(name: string | symbol): name is string {
  return typeof name === 'string' && !/^(?:[_#]|$)/.test(name) && !hiddenNames.has(name);
}

type Method = (...args: unknown[]) => unknown;

const isMethod = (value: unknown): value is Method => typeof value === 'function';

/** Returns the methods by name; accessors are not called. Throws `OPTION_INVALID` if there are none. */
export function methodsOf(service: object): ReadonlyMap<string, Method> {
  const wanted = 'an object with methods';
  if (typeof service !== 'object' || service === null) throw invalid('service', service, wanted);
  const methods = new Map<string, Method>();
  const seen = new Set<string>();
  let at: unknown = service;
  while (typeof at === 'object' && at !== null && at !== Object.prototype) {
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(at))) {
      if (seen.has(name) || !isMethodName(name)) continue;
      seen.add(name); // also a property that hides an inherited method
      if (isMethod(value)) methods.set(name, value);
    }
    at = Object.getPrototypeOf(at);
  }
  if (methods.size === 0) throw invalid('service', service, wanted);
  return methods;
}
