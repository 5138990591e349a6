// Classes right after their text was evaluated here: what a task changes later differs from that.
// Not here: these differences (classes.ts).

import { descriptorOf, type OwnDescriptor } from '../../lib/index.js';
import { functionsOf, rememberUsual } from '../text/text-members.js';
import type { AnyFunction } from '../types.js';

type Key = string | symbol;

/** Descriptors of a class and its prototype, right after the text was evaluated here. */
const pristine = new WeakMap<object, ReadonlyMap<Key, OwnDescriptor>>();

/** Records what evaluating the text made, before anything is changed. */
export function rememberPristine(fn: AnyFunction): void {
  const prototype: unknown = fn.prototype;
  for (const target of [fn, prototype]) {
    if ((typeof target !== 'object' && typeof target !== 'function') || target === null) continue;
    const entries = Reflect.ownKeys(target).flatMap((key): [Key, OwnDescriptor][] => {
      const descriptor = descriptorOf(target, key);
      if (descriptor === undefined) return [];
      for (const [, each] of functionsOf(descriptor, fn)) rememberUsual(each);
      return [[key, descriptor]];
    });
    pristine.set(target, new Map(entries));
  }
}

/** The properties that evaluation gave a class, or its prototype; `undefined`: it was not made here. */
export function allPristineOf(target: object): ReadonlyMap<Key, OwnDescriptor> | undefined {
  return pristine.get(target);
}

/** The property that evaluation gave a class that was re-created here. */
export function pristineOf(target: object, key: Key): OwnDescriptor | undefined {
  return pristine.get(target)?.get(key);
}

/**
 * The function that a `special.member` names in `owner`, a class that was made here; `undefined`: it has
 * none.
 */
export function memberIn(owner: unknown, entry: readonly unknown[]): unknown {
  const [, , isStatic, cell, part] = entry;
  if (typeof owner !== 'function') return undefined;
  const target: unknown = isStatic === 1 ? owner : owner.prototype;
  const key: unknown = Array.isArray(cell) ? cell[0] : undefined;
  if ((typeof target !== 'object' && typeof target !== 'function') || target === null) return;
  if (typeof key !== 'string' && typeof key !== 'symbol') return undefined;
  // A task may have replaced it since.
  const own = pristineOf(target, key) ?? descriptorOf(target, key);
  return part === 'get' ? own?.get : part === 'set' ? own?.set : own?.value;
}
