// The way out where Node itself fails because of what a program has added to `Object.prototype`. Node reads
// `path`, `signal` or `set` of its own options and descriptors from there, and then loads and starts nothing. An
// index there is an element of each list that lacks it, of Node's lists and ours.

import { isNativeError } from 'node:util/types';
import { isIndex } from '../input/plain.js';

/** Keys that every `Object.prototype` has. */
export const standardKeys: ReadonlySet<string | symbol> = new Set(
  (
    'constructor __defineGetter__ __defineSetter__ hasOwnProperty __lookupGetter__ __lookupSetter__ ' +
    'isPrototypeOf propertyIsEnumerable toString valueOf __proto__ toLocaleString'
  ).split(' '),
);

/** More are not named: a library that adds so many is found by the first. */
const maxNames = 5;

/** Says that lists inherit an element, and what to do; `undefined`: they do not. Cheap. */
export function inheritedElement(): string | undefined {
  // `for…in` skips elements that are not enumerable: the likely index is checked by itself.
  let found = 0 in Array.prototype ? '0' : undefined;
  for (const key in Array.prototype) if (isIndex(key)) found ??= key;
  if (found === undefined) return undefined;
  const holder = Object.hasOwn(Array.prototype, found) ? 'Array.prototype' : 'Object.prototype';
  return `this program has added ${found} to ${holder}, which is an element of each list that lacks it: delete it`;
}

/**
 * Says that additions to `Object.prototype` made Node throw `cause`, and what to do; `undefined`: there are none,
 * or it is no `TypeError`, as Node throws for options that it cannot use. Inherited elements make it throw anything.
 */
export function prototypeRemedy(cause: unknown): string | undefined {
  const element = inheritedElement();
  if (element !== undefined) return element;
  if (!isNativeError(cause) || cause.name !== 'TypeError') return undefined;
  const added = Reflect.ownKeys(Object.prototype).filter((key) => !standardKeys.has(key));
  if (added.length === 0) return undefined;
  const names = added.slice(0, maxNames).map(String).join(', ');
  const more = added.length > maxNames ? ` and ${added.length - maxNames} more` : '';
  return `this program has added ${names}${more} to Object.prototype, where Node reads it as an option: delete it`;
}
