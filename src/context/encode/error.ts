// Export of errors that a task threw. An error always arrives: fields that cannot travel are left out one by
// one, and the rest is sent. Non-errors travel too.

import * as types from 'node:util/types';
import { defineOwn, hasPrivateMembers, withoutStack } from '../../lib/index.js';
import type { Exporter, ValueSnapshot } from '../types.js';
import { refusalOf } from '../values/refuse.js';

/** Bytes for anything that was thrown. Never throws. */
export function exportError(exporter: Exporter, error: unknown): ValueSnapshot {
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

/** The parts of anything thrown that can travel. */
export function reduceError(exporter: Exporter, error: unknown): unknown {
  return new Reduction(exporter).errorOf(error, 0);
}

const builtinErrors = { TypeError, RangeError, SyntaxError, ReferenceError, EvalError, URIError };
const maxDepth = 8;

/** Reduces errors that may hold each other. */
class Reduction {
  readonly #exporter: Exporter;
  /** The stand-in of each error that was met. */
  readonly #made = new Map<unknown, Error>();

  constructor(exporter: Exporter) {
    this.#exporter = exporter;
  }

  /** The parts of `error` that can travel, in an error of its class, or of the nearest built-in one. */
  errorOf(error: unknown, depth: number): unknown {
    const before = this.#made.get(error);
    if (before !== undefined) return before;
    if (typeof error !== 'object' || error === null || depth > maxDepth) {
      return this.#canTravel(error) ? error : new Error(describe(error));
    }
    const reduced = this.#inItsClass(error) ?? inBuiltinClass(error);
    this.#made.set(error, reduced);
    const left = this.#hiddenParts(error);
    for (const key of ownKeys(error)) {
      if (key === 'stack' || (Object.hasOwn(reduced, key) && typeof key === 'string')) continue;
      const value = get(error, key);
      const [isFound, part] = this.#partOf(value, String(key), left, depth, errorKeys.has(key));
      if (isFound) define(reduced, key, part, isEnumerable(error, key));
    }
    const note = `    at [left out, which cannot travel: ${left.join(', ')}]`;
    const head = `${text(reduced, 'name') ?? 'Error'}: ${text(reduced, 'message') ?? ''}`;
    const stack = text(error, 'stack') ?? head;
    define(reduced, 'stack', left.length > 0 ? `${stack}\n${note}` : stack, false);
    return reduced;
  }

  #hiddenParts(error: object): string[] {
    if (types.isProxy(error)) return [];
    const where = this.#exporter.hiddenState(error);
    return [
      ...(hasPrivateMembers(error) ? ['its private members'] : []),
      ...(where === undefined ? [] : [`what a module keeps of it ${where}`]),
    ];
  }

  /** The parts of a value that can travel; the paths of the others are added to `left`. */
  #partOf(
    value: unknown,
    path: string,
    left: string[],
    depth: number,
    mayHoldErrors: boolean,
  ): readonly [isFound: boolean, part?: unknown] {
    const made = this.#made.get(value);
    if (made !== undefined) return [true, made];
    if (this.#canTravel(value)) return [true, value];
    if (mayHoldErrors || types.isNativeError(value)) {
      if (Array.isArray(value)) {
        return [true, value.map((part: unknown) => this.errorOf(part, depth + 1))];
      }
      return [true, this.errorOf(value, depth + 1)];
    }
    if (isRecord(value)) return [true, this.#partsOf(value, path, left)];
    left.push(path);
    return [false];
  }

  /** The members of an object that can travel: the status of a response, the URL of a request. */
  #partsOf(value: object, path: string, left: string[]): object {
    const parts = {};
    for (const key of ownKeys(value)) {
      const found = get(value, key);
      const part = this.#made.get(found) ?? found;
      if (part !== found || this.#canTravel(part)) {
        define(parts, key, part, isEnumerable(value, key));
      } else left.push(`${path}.${String(key)}`);
    }
    const prototype: object | null = Object.getPrototypeOf(value);
    if (this.#canTravel(Object.create(prototype))) Object.setPrototypeOf(parts, prototype);
    return parts;
  }

  /** An empty error of the class of `error`; `undefined`: that class cannot travel. */
  #inItsClass(error: object): Error | undefined {
    try {
      if (!types.isNativeError(error) && !(error instanceof Error)) return undefined;
      const made = types.isNativeError(error) ? bareError(Error) : bareLike(error);
      Object.setPrototypeOf(made, Object.getPrototypeOf(error));
      return this.#canTravel(made) ? made : undefined;
    } catch {
      return undefined; // a Proxy that hides its prototype
    }
  }

  #canTravel(value: unknown): boolean {
    try {
      this.#exporter.exportValue(value, 'a field of the error');
      return true;
    } catch {
      return false;
    }
  }
}

const errorKeys = new Set<string | symbol>(['cause', 'errors']);

/** A bare stand-in for an error that V8 did not make: an object, or a DOMException. */
function bareLike(error: object): Error {
  if (error instanceof DOMException) return new DOMException(error.message, error.name);
  return Object.create(Error.prototype);
}

/** An error of the nearest built-in class, with the name and the message that `error` shows. */
function inBuiltinClass(error: object): Error {
  const Base = Object.values(builtinErrors).find((Class) => error instanceof Class) ?? Error;
  const made = bareError(Base);
  define(made, 'message', text(error, 'message') ?? describe(error), false);
  const name = text(error, 'name');
  if (name !== undefined && name !== made.name) {
    define(made, 'name', name, isEnumerable(error, 'name'));
  }
  return made;
}

function bareError(Base: ErrorConstructor): Error {
  return withoutStack(() => new Base());
}

/** True: an object that consists of its properties alone. */
function isRecord(value: unknown): value is object {
  if (typeof value !== 'object' || value === null || refusalOf(value) !== undefined) return false;
  return Object.prototype.toString.call(value) === '[object Object]';
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

function define(target: object, key: string | symbol, value: unknown, enumerable: boolean): void {
  defineOwn(target, key, { value, writable: true, enumerable, configurable: true });
}

function describe(value: unknown): string {
  try {
    return `thrown: ${String(value)}`;
  } catch {
    return 'thrown: a value that has no text';
  }
}
