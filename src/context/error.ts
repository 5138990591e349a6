// The way of what a task threw. It must always arrive: what cannot travel is left out field by field,
// and the rest is sent. Non-errors travel too.

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
      const enhancer = Object.getOwnPropertyDescriptor(error, key);
      if (enhancer === undefined || !Reflect.deleteProperty(error, key)) continue;
      return () => Object.defineProperty(error, key, enhancer);
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

/** The parts of `error` that can travel, in an error of the nearest built-in class. */
function reduce(exporter: Exporter, error: unknown, depth: number): unknown {
  if (typeof error !== 'object' || error === null || depth > maxDepth) {
    return canTravel(exporter, error) ? error : new Error(describe(error));
  }
  const base = Object.values(builtinErrors).find((Class) => error instanceof Class) ?? Error;
  const reduced = new base(text(error, 'message') ?? describe(error));
  const name = text(error, 'name');
  if (name !== undefined && name !== reduced.name) define(reduced, 'name', name);
  define(reduced, 'stack', text(error, 'stack') ?? `${name ?? 'Error'}: ${reduced.message}`);
  for (const key of Object.getOwnPropertyNames(error)) {
    if (key === 'message' || key === 'stack' || key === 'name') continue;
    const value = get(error, key);
    if (canTravel(exporter, value)) define(reduced, key, value);
    else if (key === 'cause') define(reduced, key, reduce(exporter, value, depth + 1));
    else if (key === 'errors' && Array.isArray(value)) {
      define(
        reduced,
        key,
        value.map((part: unknown) => reduce(exporter, part, depth + 1)),
      );
    }
  }
  return reduced;
}

function canTravel(exporter: Exporter, value: unknown): boolean {
  try {
    exporter.exportValue(value, 'a field of the error');
    return true;
  } catch {
    return false;
  }
}

function get(value: object, key: string): unknown {
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

function define(target: object, key: string, value: unknown): void {
  Object.defineProperty(target, key, {
    value,
    writable: true,
    enumerable: key !== 'stack' && key !== 'cause' && key !== 'name',
    configurable: true,
  });
}

function describe(value: unknown): string {
  try {
    return `thrown: ${String(value)}`;
  } catch {
    return 'thrown: a value that has no text';
  }
}
