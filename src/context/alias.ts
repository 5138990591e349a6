// Whether the arguments of a call hold an object that its function captured as well. Function and
// arguments are two messages; where they share something they must be one, or the host gets two copies.
// Not here: functions among the arguments, which are always sent along with the function (exporter.ts).

import type { Graph } from './encode.js';

/** Captured values: as slots that V8 writes as they are, or as a graph. */
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

function objectsIn(values: readonly unknown[]): Set<object> {
  const seen = new Set<object>();
  for (const value of values) find(value, seen, () => false);
  return seen;
}

/** Walks what `value` holds, each object once, until `isWanted` accepts one. */
function find(value: unknown, seen: Set<object>, isWanted: (value: object) => boolean): boolean {
  if (typeof value !== 'object' || value === null || seen.has(value)) return false;
  seen.add(value);
  if (isWanted(value)) return true;
  if (ArrayBuffer.isView(value)) return find(value.buffer, seen, isWanted);
  if (Array.isArray(value)) {
    // Symbol keys and names beside the elements make a graph, which is asked by itself.
    return value.some((entry) => find(entry, seen, isWanted));
  }
  if (value instanceof Map) {
    for (const [key, entry] of Map.prototype.entries.call(value)) {
      if (find(key, seen, isWanted) || find(entry, seen, isWanted)) return true;
    }
  } else if (value instanceof Set) {
    for (const entry of Set.prototype.values.call(value)) {
      if (find(entry, seen, isWanted)) return true;
    }
  }
  for (const key of Reflect.ownKeys(value)) {
    const descriptor = Object.getOwnPropertyDescriptor(value, key);
    if (find(descriptor?.value, seen, isWanted)) return true;
  }
  return false;
}
