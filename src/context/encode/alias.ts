// Detects objects that are both among a call's arguments and among the captures of its function. Function and
// arguments are two messages; with a shared object they must be one, or the worker gets two copies.
// Not here: functions among the arguments, which are always sent along with the function (exporter.ts).

import * as types from 'node:util/types';
import { isPlainArray, ownValue } from '../../lib/index.js';
import { paramsOf } from '../values/urls.js';
import type { Graph } from './encode.js';

/** Captured values: as slots that V8 serializes directly, or as a graph. */
export type Captured = readonly unknown[] | Graph;

export function sharesAny(args: readonly unknown[], captured: Captured): boolean {
  const held = Array.isArray(captured) ? objectsIn(captured) : undefined;
  if (held?.size === 0) return false;
  const isHeld = (value: object): boolean =>
    held === undefined ? isGraph(captured) && captured.holds(value) : held.has(value);
  const seen = new Set<object>();
  return args.some((arg) => find(arg, seen, isHeld));
}

function isGraph(captured: Captured): captured is Graph {
  return !Array.isArray(captured);
}

/** All objects among `values` and in them. */
export function objectsIn(values: readonly unknown[]): Set<object> {
  const seen = new Set<object>();
  for (const value of values) find(value, seen, () => false);
  return seen;
}

/**
 * Walks the values that `root` holds, each object once, until `matches` accepts one. Runs no code of the
 * values.
 */
function find(root: unknown, seen: Set<object>, matches: (value: object) => boolean): boolean {
  // A list instead of recursion: values that are nested too deeply are refused by name later.
  const open: object[] = [];
  const meet = (value: unknown): boolean => {
    if (typeof value !== 'object' || value === null || seen.has(value)) return false;
    seen.add(value);
    if (matches(value)) return true;
    open.push(value);
    return false;
  };
  if (meet(root)) return true;
  for (let value = open.pop(); value !== undefined; value = open.pop()) {
    if (meetParts(value, meet)) return true;
  }
  return false;
}

function meetParts(value: object, meet: (part: unknown) => boolean): boolean {
  if (types.isProxy(value)) return false; // it is refused later
  if (ArrayBuffer.isView(value)) return meet(value.buffer);
  if (Array.isArray(value) && isPlainArray(value)) {
    for (let at = 0; at < value.length; at += 1) if (meet(value[at])) return true;
    return false;
  }
  if (types.isMap(value)) {
    for (const [key, entry] of Map.prototype.entries.call(value)) {
      if (meet(key) || meet(entry)) return true;
    }
  } else if (types.isSet(value)) {
    for (const entry of Set.prototype.values.call(value)) if (meet(entry)) return true;
  }
  if (meet(paramsOf(value))) return true;
  for (const key of Reflect.ownKeys(value)) {
    if (meet(ownValue(value, key))) return true;
  }
  return false;
}
