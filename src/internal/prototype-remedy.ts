// The way out where Node itself fails because of what a program has added to `Object.prototype`. Node reads
// `path`, `signal` or `set` of its own options and descriptors from there, and then loads and starts nothing.

import { isNativeError } from 'node:util/types';

/** Keys that every `Object.prototype` has. */
export const standardKeys: ReadonlySet<string | symbol> = new Set(
  (
    'constructor __defineGetter__ __defineSetter__ hasOwnProperty __lookupGetter__ __lookupSetter__ ' +
    'isPrototypeOf propertyIsEnumerable toString valueOf __proto__ toLocaleString'
  ).split(' '),
);

/** More are not named: a library that adds so many is found by the first. */
const mostNames = 5;

/**
 * Says that additions to `Object.prototype` made Node throw `cause`, and what to do; `undefined`: there are none,
 * or it is no `TypeError`, as Node throws for options that it cannot use.
 */
export function prototypeRemedy(cause: unknown): string | undefined {
  if (!isNativeError(cause) || cause.name !== 'TypeError') return undefined;
  const added = Reflect.ownKeys(Object.prototype).filter((key) => !standardKeys.has(key));
  if (added.length === 0) return undefined;
  const names = added.slice(0, mostNames).map(String).join(', ');
  const more = added.length > mostNames ? ` and ${added.length - mostNames} more` : '';
  return `this program has added ${names}${more} to Object.prototype, where Node reads it as an option: delete it`;
}
