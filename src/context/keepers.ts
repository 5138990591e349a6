// Collections and symbols around a class, by which its module may keep a part of each instance.

import * as types from 'node:util/types';
import { descriptorsOf } from '../internal/index.js';
import { inspectSelf } from './inspector.js';
import { variablesIn } from './scopes.js';
import type { AnyFunction } from './types.js';

/** A collection or a symbol that the code of a class can reach. */
export type Keeper = object | symbol;

/** Those around a class, as far as its constructor sees them. */
export function keepersAround(owner: AnyFunction): Keeper[] {
  const { scopes, ofScripts } = inspectSelf().capture(owner);
  return scopes
    .filter((scope) => scope !== ofScripts)
    .flatMap(variablesIn)
    .map(([, value]) => value)
    .filter((value): value is Keeper => typeof value === 'symbol' || isCollection(value));
}

function isCollection(value: unknown): boolean {
  return (
    types.isWeakMap(value) || types.isWeakSet(value) || types.isMap(value) || types.isSet(value)
  );
}

/** How `value` is kept there; `undefined`: it is not. */
export function keptIn(keeper: Keeper, value: object): string | undefined {
  if (typeof keeper === 'symbol') {
    const isShared = Symbol.keyFor(keeper) !== undefined || isWellKnown(keeper);
    return !isShared && Object.hasOwn(value, keeper) ? 'under a symbol of its own' : undefined;
  }
  if (types.isWeakMap(keeper)) return keeper.has(value) ? 'in a WeakMap' : undefined;
  if (types.isWeakSet(keeper)) return keeper.has(value) ? 'in a WeakSet' : undefined;
  if (types.isMap(keeper)) return Map.prototype.has.call(keeper, value) ? 'in a Map' : undefined;
  if (types.isSet(keeper)) return Set.prototype.has.call(keeper, value) ? 'in a Set' : undefined;
  return undefined;
}

function isWellKnown(symbol: symbol): boolean {
  return descriptorsOf(Symbol).some(([, { value }]) => value === symbol);
}
