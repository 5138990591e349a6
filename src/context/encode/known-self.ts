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
import { type Graph, isData, ownerOf } from './encode.js';

export interface KnownSelf {
  /** The result of `Graph.payload` without entries of plain values. `entry`, `slots` and `copy` are parts of it. */
  readonly payload: readonly unknown[];
  /** The special of the arrow. */
  readonly entry: unknown[];
  /** The slots of the arrow. */
  readonly slots: unknown[];
  /** The copy of its `this`. */
  readonly copy: object;
  readonly keys: readonly string[];
  readonly prototype: object;
  readonly owner: AnyFunction;
  /** The special of that class. */
  readonly ownerEntry: readonly unknown[];
  /** Calls with another kind of `this` since the last one of this kind. */
  misses: number;
}

/** The parts of an export of such an arrow. */
export interface SelfParts {
  readonly self: KnownSelf;
  /** The cell that gets the special for the prototype. */
  readonly prototypeCell: object;
  /** Specials that are no values of slots. */
  readonly specials: ReadonlySet<number>;
}

/** True: an arrow uses the `this` around it, of which it is no property, and no `arguments`. */
export function usesOnlyThis({ self, place }: Described): boolean {
  return self.length === 2 && self[1] === undefined && place !== undefined;
}

/** The parts of an export of such an arrow; `undefined`: its `this` is another kind of object. */
export function selfIn({ self: [instance] }: Described, graph: Graph): SelfParts | undefined {
  const entry = graph.specials[0];
  const [slots, cell] = [entry?.[3], entry?.[5]];
  const [copy]: unknown[] = Array.isArray(cell) ? cell : [];
  const [prototypeCell, users, ...others] = graph.prototypes;
  if (entry === undefined || !Array.isArray(slots) || !isObject(instance)) return undefined;
  // Maps, Dates, arrays and the like have more than properties, and some are no copies.
  if (!isObject(copy) || Object.getPrototypeOf(copy) !== Object.prototype) return undefined;
  const isAlone = Array.isArray(users) && users.length === 1 && users[0] === copy;
  if (!isAlone || others.length > 0 || !isObject(prototypeCell)) return undefined;
  const prototype: unknown = Object.getPrototypeOf(instance);
  const owner = ownerOf(prototype);
  const index = graph.indexOf(prototype);
  const ownerIndex = graph.indexOf(owner);
  if (!isObject(prototype) || owner === undefined) return undefined;
  if (index === undefined || ownerIndex === undefined) return undefined;
  const [made, ownerEntry] = [graph.specials[index], graph.specials[ownerIndex]];
  if (made?.[0] !== special.prototype || made[1] !== ownerIndex) return undefined;
  const kind = ownerEntry?.[0];
  if (ownerEntry === undefined || (kind !== special.closure && kind !== special.imported)) {
    return undefined;
  }
  const self: KnownSelf = {
    payload: graph.payload().map((part) => (part === graph.fills ? [] : part)),
    entry,
    slots,
    copy,
    keys: Object.keys(instance),
    prototype,
    owner,
    ownerEntry: Object.freeze([...ownerEntry]),
    misses: 0,
  };
  if (!isAsLearnt(self, instance)) return undefined;
  clear(self);
  return { self, prototypeCell, specials: new Set([0, index, ownerIndex]) };
}

/** True: the properties of `instance` are all that describes it, and have the names that were learnt. */
export function isAsLearnt(known: KnownSelf, instance: unknown): instance is object {
  if (!isObject(instance) || types.isProxy(instance)) return false;
  if (Object.getPrototypeOf(instance) !== known.prototype) return false;
  if (ownerOf(known.prototype) !== known.owner || send in instance) return false;
  if (!Object.isExtensible(instance) || hasPrivateMembers(instance)) return false;
  const keys = Reflect.ownKeys(instance);
  return (
    keys.length === known.keys.length &&
    keys.every((key, at) => key === known.keys[at] && isPlainProperty(instance, key))
  );
}

export function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function isPlainProperty(holder: object, key: string | symbol): boolean {
  const own = descriptorOf(holder, key);
  return isData(own) && isSurelyPlain(own?.value);
}

/**
 * Calls `write` while the payload has these values: `values` of the slots, the properties of `instance`, and the
 * identity of the arrow.
 */
export function withSelf<T>(
  known: KnownSelf,
  instance: object,
  values: readonly unknown[],
  identity: Identity,
  write: (payload: readonly unknown[]) => T,
): T {
  const { payload, entry, slots, copy, keys } = known;
  entry[2] = identity;
  for (const [at, value] of values.entries()) slots[at] = value;
  for (const key of keys) Reflect.set(copy, key, Reflect.get(instance, key));
  try {
    return write(payload);
  } finally {
    clear(known);
  }
}

/** Takes the values of the last call out of the payload, which outlives it. */
function clear({ slots, copy, keys }: KnownSelf): void {
  slots.fill(0);
  for (const key of keys) Reflect.set(copy, key, 0);
}
