// Property descriptors that inherit nothing. Those of the language are ordinary objects: where a program has put
// `get` or `value` on `Object.prototype`, a descriptor that lacks it has that one, as a literal given to
// `defineProperty` has. The functions are those that were there when this library was loaded.

import { isProxy } from 'node:util/types';

const { getOwnPropertyDescriptor, getOwnPropertyNames, hasOwn } = Object;
const { defineProperty: tryDefineProperty } = Reflect;
const defineProperty: <T>(object: T, key: PropertyKey, descriptor: object) => T =
  Object.defineProperty;

class DataDescriptor {
  readonly value: unknown;
  readonly writable: boolean;
  readonly enumerable: boolean;
  readonly configurable: boolean;

  constructor({ value, writable, enumerable, configurable }: PropertyDescriptor) {
    this.value = value;
    this.writable = writable === true;
    this.enumerable = enumerable === true;
    this.configurable = configurable === true;
  }
}

class AccessorDescriptor {
  readonly get: PropertyDescriptor['get'] | undefined;
  readonly set: PropertyDescriptor['set'] | undefined;
  readonly enumerable: boolean;
  readonly configurable: boolean;

  constructor({ get, set, enumerable, configurable }: PropertyDescriptor) {
    this.get = get;
    this.set = set;
    this.enumerable = enumerable === true;
    this.configurable = configurable === true;
  }
}

// Not `{ __proto__: null }`: V8 makes a slow table of that, and there are many descriptors.
for (const { prototype } of [DataDescriptor, AccessorDescriptor]) {
  Reflect.setPrototypeOf(prototype, null);
  Reflect.deleteProperty(prototype, 'constructor');
}

/** A descriptor whose parts may be `undefined`, as those of the language. */
export interface OwnDescriptor {
  readonly value?: unknown;
  readonly get?: PropertyDescriptor['get'] | undefined;
  readonly set?: PropertyDescriptor['set'] | undefined;
  readonly writable?: boolean | undefined;
  readonly enumerable?: boolean | undefined;
  readonly configurable?: boolean | undefined;
}

/** `Object.getOwnPropertyDescriptor`: has `value` and `writable`, or `get` and `set`, and inherits nothing. */
export function descriptorOf(object: object, key: PropertyKey): OwnDescriptor | undefined {
  const found = getOwnPropertyDescriptor(object, key);
  if (found === undefined) return undefined;
  return hasOwn(found, 'value') ? new DataDescriptor(found) : new AccessorDescriptor(found);
}

/** The descriptors of all properties whose key is a text, hidden ones too. */
export function descriptorsOf(object: object): [name: string, descriptor: OwnDescriptor][] {
  const found: [string, OwnDescriptor][] = [];
  for (const name of getOwnPropertyNames(object)) {
    const descriptor = descriptorOf(object, name);
    if (descriptor !== undefined) found.push([name, descriptor]);
  }
  return found;
}

/** The name of a function, for messages; '' without a name that can be read without running user code. */
export function functionName(fn: object): string {
  const name: unknown = isProxy(fn) ? undefined : ownValue(fn, 'name');
  return typeof name === 'string' ? name : '';
}

/** The own value of `object` at `key`; `undefined` for an accessor, which is not called. */
export function ownValue(object: object, key: PropertyKey): unknown {
  const found = getOwnPropertyDescriptor(object, key);
  return found !== undefined && hasOwn(found, 'value') ? found.value : undefined;
}

/** `Object.defineProperty`, by what `descriptor` has itself. */
export function defineOwn<T extends object>(
  object: T,
  key: PropertyKey,
  descriptor: OwnDescriptor,
): T {
  return defineProperty(object, key, { __proto__: null, ...descriptor });
}

/** `Reflect.defineProperty`, by what `descriptor` has itself: false where it cannot be. */
export function tryDefineOwn(object: object, key: PropertyKey, descriptor: OwnDescriptor): boolean {
  const given: object = { __proto__: null, ...descriptor };
  return tryDefineProperty(object, key, given);
}
