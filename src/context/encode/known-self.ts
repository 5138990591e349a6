// Arrows of known code that use `this`, an object of a class with plain properties. The payload of the export that was
// learnt is written again, with the present values in it: the class is kept by the peer, or imported there.
// Not here: the code and its variables (known-closures.ts).

import * as types from 'node:util/types';
import { descriptorOf, hasPrivateMembers } from '../../lib/index.js';
import type { Described } from '../closures/describe.js';
import { type Identity, special } from '../protocol.js';
import type { AnyFunction } from '../types.js';
import { send } from '../values/hooks.js';
import { isSurelyPlain } from '../values/plain.js';
import type { Graph } from './encode.js';

export interface KnownSelf {
  /** As `Graph.payload` gives it, without entries of plain values. The three below are parts of it. */
  readonly payload: readonly unknown[];
  /** The special of the arrow. */
  readonly entry: unknown[];
  /** Its slots. */
  readonly slots: unknown[];
  /** The copy of its `this`. */
  readonly copy: object;
  readonly keys: readonly string[];
  readonly prototype: object;
  /** Where the special for that prototype is put. */
  readonly prototypeCell: object;
  /** Specials that are no values of slots. */
  readonly specials: ReadonlySet<number>;
  /** The class that the peer keeps, and its special; `undefined`: the peer imports it. */
  readonly kept: readonly [of: WeakRef<AnyFunction>, entry: readonly unknown[]] | undefined;
}

/** True: an arrow uses `this` alone, and is no property of it. */
export function usesOnlyThis({ self, place }: Described): boolean {
  return self.length === 2 && self[1] === undefined && place !== undefined;
}

/** The parts of an export of such an arrow; `undefined`: its `this` is another kind of object. */
export function selfIn({ self: [instance] }: Described, graph: Graph): KnownSelf | undefined {
  const entry = graph.specials[0];
  const [slots, cell] = [entry?.[3], entry?.[5]];
  const [copy]: unknown[] = Array.isArray(cell) ? cell : [];
  const [prototypeCell, users, ...others] = graph.prototypes;
  if (entry === undefined || !Array.isArray(slots) || !isObject(instance) || !isObject(copy)) {
    return undefined;
  }
  const isAlone = Array.isArray(users) && users.length === 1 && users[0] === copy;
  if (!isAlone || others.length > 0 || !isObject(prototypeCell)) return undefined;
  const prototype: unknown = Object.getPrototypeOf(instance);
  const owner: unknown = isObject(prototype) && descriptorOf(prototype, 'constructor')?.value;
  const index = graph.indexOf(prototype);
  const made = index === undefined ? undefined : graph.specials[index];
  const ownerIndex = graph.indexOf(owner);
  const ownerEntry = ownerIndex === undefined ? undefined : graph.specials[ownerIndex];
  if (index === undefined || ownerIndex === undefined || ownerEntry === undefined) return undefined;
  if (made?.[0] !== special.prototype || made[1] !== ownerIndex) return undefined;
  const [kind] = ownerEntry;
  if (typeof owner !== 'function' || (kind !== special.closure && kind !== special.imported)) {
    return undefined;
  }
  const keys = Object.keys(instance);
  const found: KnownSelf = {
    payload: graph.payload().map((part) => (part === graph.fills ? [] : part)),
    entry,
    slots,
    copy,
    keys,
    prototype: Object(prototype),
    prototypeCell,
    specials: new Set([0, index, ownerIndex]),
    kept: kind === special.closure ? [new WeakRef(owner), [...ownerEntry]] : undefined,
  };
  return isAsLearnt(found, instance) ? found : undefined;
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

/** True: the properties of `instance` are all that describes it, and have the same names as those that were learnt. */
export function isAsLearnt(known: KnownSelf, instance: unknown): instance is object {
  if (!isObject(instance) || types.isProxy(instance)) return false;
  if (Object.getPrototypeOf(instance) !== known.prototype || send in instance) return false;
  if (!Object.isExtensible(instance) || hasPrivateMembers(instance)) return false;
  const keys = Reflect.ownKeys(instance);
  return (
    keys.length === known.keys.length &&
    keys.every((key, at) => key === known.keys[at] && isPlainProperty(instance, key))
  );
}

function isPlainProperty(holder: object, key: string | symbol): boolean {
  const own = descriptorOf(holder, key);
  const isOrdinary = own?.writable === true && own.enumerable === true && own.configurable === true;
  return isOrdinary && isSurelyPlain(own.value);
}

/**
 * Calls `write` while the payload has these values: `values` of the slots, the properties of `instance`, and the identity
 * of the arrow.
 */
export function withSelf<T>(
  { payload, entry, slots, copy, keys }: KnownSelf,
  instance: object,
  values: readonly unknown[],
  identity: Identity,
  write: (payload: readonly unknown[]) => T,
): T {
  entry[2] = identity;
  for (const [at, value] of values.entries()) slots[at] = value;
  for (const key of keys) Reflect.set(copy, key, Reflect.get(instance, key));
  try {
    return write(payload);
  } finally {
    // Nothing of the call stays here.
    slots.fill(0);
    for (const key of keys) Reflect.set(copy, key, 0);
  }
}
