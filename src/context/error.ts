// The way of what a task threw. It must always arrive: what cannot travel is left out field by field,
// and the rest is sent. Non-errors travel too.

import * as types from 'node:util/types';
import { defineOwn, descriptorOf } from '../internal/index.js';
import { refusalOf } from './refuse.js';
import type { Exporter, ValueSnapshot } from './types.js';

/** Bytes for anything that was thrown. Never throws. */
export function exportError(exporter: Exporter, error: unknown): ValueSnapshot {
  const putBack = takeEnhancer(error);
  try {
    return exportFully(exporter, error);
  } finally {
    putBack();
  }
}

/**
 * Takes off what Node's EventEmitter leaves on an error that it throws for want of a listener: a function under
 * a symbol that adds "Emitted at" when the error is printed. It would keep the error's class from travelling.
 */
function takeEnhancer(error: unknown): () => void {
  if (typeof error !== 'object' || error === null) return () => {};
  try {
    for (const key of Object.getOwnPropertySymbols(error)) {
      if (key.description?.startsWith('kEnhanceStack') !== true) continue;
      const enhancer = descriptorOf(error, key);
      if (enhancer === undefined || !Reflect.deleteProperty(error, key)) continue;
      return () => defineOwn(error, key, enhancer);
    }
  } catch {
    // A Proxy that does not tell its keys has none of Node's.
  }
  return () => {};
}

function exportFully(exporter: Exporter, error: unknown): ValueSnapshot {
  try {
    return exporter.exportValue(error, 'the error');
  } catch {
    try {
      return exporter.exportValue(reduceError(exporter, error), 'the error');
    } catch {
      return exporter.exportValue(
        { name: 'Error', message: 'an error that cannot travel' },
        'error',
      );
    }
  }
}

/** The parts of anything that was thrown that can travel. */
export function reduceError(exporter: Exporter, error: unknown): unknown {
  return reduce(exporter, error, 0);
}

const builtinErrors = { TypeError, RangeError, SyntaxError, ReferenceError, EvalError, URIError };
const maxDepth = 8;

/** The parts of `error` that can travel, in an error of its class, or of the nearest built-in one. */
function reduce(exporter: Exporter, error: unknown, depth: number): unknown {
  if (typeof error !== 'object' || error === null || depth > maxDepth) {
    return canTravel(exporter, error) ? error : new Error(describe(error));
  }
  const base = Object.values(builtinErrors).find((Class) => error instanceof Class) ?? Error;
  const reduced = new base(text(error, 'message') ?? describe(error));
  const name = text(error, 'name');
  if (name !== undefined && name !== reduced.name) define(reduced, 'name', name);
  define(reduced, 'stack', text(error, 'stack') ?? `${name ?? 'Error'}: ${reduced.message}`);
  const left: string[] = [];
  for (const key of ownKeys(error)) {
    if (key === 'message' || key === 'stack' || key === 'name') continue;
    const value = get(error, key);
    if (canTravel(exporter, value)) define(reduced, key, value, isEnumerable(error, key));
    else if (key === 'cause') define(reduced, key, reduce(exporter, value, depth + 1));
    else if (key === 'errors' && Array.isArray(value)) {
      define(
        reduced,
        key,
        value.map((part: unknown) => reduce(exporter, part, depth + 1)),
      );
    } else if (isRecord(value)) {
      define(
        reduced,
        key,
        partsOf(exporter, value, `${String(key)}.`, left),
        isEnumerable(error, key),
      );
    } else left.push(String(key));
  }
  if (left.length > 0) {
    const note = `    at [left out, which cannot travel: ${left.join(', ')}]`;
    define(reduced, 'stack', `${reduced.stack}\n${note}`);
  }
  return inItsClass(exporter, error, reduced) ?? reduced;
}

/** True: an object that is what its properties are. */
function isRecord(value: unknown): value is object {
  if (typeof value !== 'object' || value === null || refusalOf(value) !== undefined) return false;
  return Object.prototype.toString.call(value) === '[object Object]';
}

/** The members of an object that can travel: of a response its status, of a request its URL. */
function partsOf(exporter: Exporter, value: object, path: string, left: string[]): object {
  const parts = {};
  for (const key of ownKeys(value)) {
    const part = get(value, key);
    if (canTravel(exporter, part)) define(parts, key, part, isEnumerable(value, key));
    else left.push(path + String(key));
  }
  const prototype: object | null = Object.getPrototypeOf(value);
  if (canTravel(exporter, Object.create(prototype))) Object.setPrototypeOf(parts, prototype);
  return parts;
}

/** `reduced` as one of the class of `error`; `undefined`: that class is built in, or cannot travel. */
function inItsClass(exporter: Exporter, error: object, reduced: Error): object | undefined {
  try {
    const prototype: object | null = Object.getPrototypeOf(error);
    if (!(error instanceof Error) || prototype === Object.getPrototypeOf(reduced)) return undefined;
    const made = types.isNativeError(error) ? new Error() : {};
    Object.setPrototypeOf(made, prototype);
    for (const key of Reflect.ownKeys(reduced)) {
      const isOfClass = (key === 'name' || key === 'message') && !Object.hasOwn(error, key);
      const property = descriptorOf(reduced, key);
      if (property !== undefined && !isOfClass) defineOwn(made, key, property);
    }
    return canTravel(exporter, made) ? made : undefined;
  } catch {
    return undefined; // a Proxy that does not tell its prototype
  }
}

function ownKeys(value: object): (string | symbol)[] {
  try {
    return Reflect.ownKeys(value);
  } catch {
    return [];
  }
}

function isEnumerable(value: object, key: string | symbol): boolean {
  return Object.prototype.propertyIsEnumerable.call(value, key);
}

function canTravel(exporter: Exporter, value: unknown): boolean {
  try {
    exporter.exportValue(value, 'a field of the error');
    return true;
  } catch {
    return false;
  }
}

function get(value: object, key: string | symbol): unknown {
  try {
    return Reflect.get(value, key);
  } catch {
    return undefined;
  }
}

function text(value: object, key: string): string | undefined {
  const found = get(value, key);
  return typeof found === 'string' ? found : undefined;
}

function define(
  target: object,
  key: string | symbol,
  value: unknown,
  enumerable = key === 'errors',
): void {
  defineOwn(target, key, { value, writable: true, enumerable, configurable: true });
}

function describe(value: unknown): string {
  try {
    return `thrown: ${String(value)}`;
  } catch {
    return 'thrown: a value that has no text';
  }
}
