// The version of a class in which each property got its present value: the value that was sent last, kept to
// compare with.
// Not here: which properties a class has beside its text (classes.ts).

import { isDeepStrictEqual } from 'node:util';
import * as types from 'node:util/types';
import { descriptorOf, type OwnDescriptor, ownOf } from '../../lib/index.js';

type Key = string | symbol;

/** Applied to every class that a peer has already, at any version: code with captured variables in it. */
export const always = Number.POSITIVE_INFINITY;

/** The last transmission of a property: its version, and a copy of its value to compare with. */
export interface Sent {
  readonly how: How;
  readonly since: number;
  readonly descriptor: OwnDescriptor | undefined;
}

export type How = 'own' | 'absent' | 'restored';

export function isSame(a: OwnDescriptor, b: OwnDescriptor): boolean {
  return (
    Object.is(a.value, b.value) &&
    a.get === b.get &&
    a.set === b.set &&
    a.writable === b.writable &&
    a.enumerable === b.enumerable &&
    a.configurable === b.configurable
  );
}

/**
 * The version in which a property got its present value; `next` where that differs from the value sent last.
 */
export function sinceOf(
  sent: Map<Key, Sent>,
  key: Key,
  how: How,
  descriptor: OwnDescriptor | undefined,
  next: number,
): number {
  const before = sent.get(key);
  const isKnown =
    before?.how === how && (how !== 'own' || isUnchanged(before.descriptor, descriptor));
  const since = isKnown ? before.since : next;
  if (!isKnown) sent.set(key, { how, since, descriptor: copyOf(descriptor) });
  return how === 'own' && holdsCode(descriptor) ? always : since;
}

/** True: it may have another meaning at the next call, though it is the same function. */
function holdsCode(descriptor: OwnDescriptor | undefined): boolean {
  return (
    descriptor !== undefined && mayHoldCode(descriptor.get ?? descriptor.set ?? descriptor.value, 3)
  );
}

/** True: there is a function in `value`, or it is too deep to decide. */
function mayHoldCode(value: unknown, depth: number): boolean {
  if (typeof value === 'function') return true;
  if (typeof value !== 'object' || value === null) return false;
  if (ArrayBuffer.isView(value)) return false;
  if (depth === 0) return true;
  if (types.isMap(value)) {
    for (const [key, entry] of Map.prototype.entries.call(value)) {
      if (mayHoldCode(key, depth - 1) || mayHoldCode(entry, depth - 1)) return true;
    }
  }
  if (types.isSet(value)) {
    for (const entry of Set.prototype.values.call(value)) {
      if (mayHoldCode(entry, depth - 1)) return true;
    }
  }
  return Reflect.ownKeys(value).some((key) => {
    const own = descriptorOf(value, key);
    return own?.get !== undefined || own?.set !== undefined || mayHoldCode(own?.value, depth - 1);
  });
}

/** A copy to compare with later: a value that is changed in place is another value. */
function copyOf(descriptor: OwnDescriptor | undefined): OwnDescriptor | undefined {
  if (descriptor === undefined || typeof descriptor.value !== 'object') return descriptor;
  if (holdsCode(descriptor)) return descriptor; // sent every time
  try {
    return ownOf({ ...descriptor, value: structuredClone(descriptor.value) });
  } catch {
    return undefined; // compared as another value each time
  }
}

function isUnchanged(before: OwnDescriptor | undefined, now: OwnDescriptor | undefined): boolean {
  if (before === undefined || now === undefined) return false;
  if (isSame(before, now) && (typeof now.value !== 'object' || now.value === null)) return true;
  const { value, ...rest } = now;
  const { value: old, ...others } = before;
  return isDeepStrictEqual(rest, others) && isEqual(old, value);
}

/** True: a copy and its original hold the same; classes of instances are not compared. */
function isEqual(copy: unknown, value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return Object.is(copy, value);
  try {
    return isDeepStrictEqual(copy, structuredClone(value));
  } catch {
    return false;
  }
}
