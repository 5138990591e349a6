// What of Node's errors no module exports, read from an error that is thrown for it: once, when it is asked for.
// Not here: classes that there are for one code only (node-errors.ts).

import { EventEmitter, on } from 'node:events';
import { getPriority } from 'node:os';
import { withoutStack } from '../internal/index.js';
import type { AnyFunction } from './types.js';

/** A process with this number cannot be: it is larger than the system allows. */
const noProcess = 2 ** 30;

export const internalErrors = {
  /** What aborted calls of Node reject with. */
  AbortError: once((): AnyFunction => {
    const thrown = thrownBy(() => on(new EventEmitter(), '', { signal: AbortSignal.abort() }));
    return constructorOf(Object.getPrototypeOf(thrown));
  }),
  /** Above the classes of errors that have `info` of a call to the system. */
  SystemError: once((): AnyFunction => {
    const thrown = thrownBy(() => getPriority(noProcess));
    return constructorOf(Object.getPrototypeOf(Object.getPrototypeOf(thrown)));
  }),
  /** The mark of errors that have a code in their first line. */
  kIsNodeError: once((): symbol => {
    const thrown = thrownBy(() => Reflect.apply(Buffer.alloc, Buffer, ['']));
    for (let at: object | null = thrown; at !== null; at = Object.getPrototypeOf(at)) {
      const own = Object.getOwnPropertySymbols(at);
      const found = own.find(({ description }) => description === markName);
      if (found !== undefined) return found;
    }
    return Symbol(markName);
  }),
};

const markName = 'kIsNodeError';

/** The one of these that has a name; `undefined`: none has. */
export function internalError(name: string): unknown {
  const read: unknown = Object.hasOwn(internalErrors, name)
    ? Reflect.get(internalErrors, name)
    : undefined;
  return typeof read === 'function' ? read() : undefined;
}

/** True: `value` is the mark of Node's errors. */
export function isErrorMark(value: symbol): boolean {
  return value.description === markName && value === internalErrors.kIsNodeError();
}

function once<T>(read: () => T): () => T {
  let held: { readonly value: T } | undefined;
  return () => {
    held ??= { value: read() };
    return held.value;
  };
}

function thrownBy(body: () => unknown): object {
  try {
    return Object(withoutStack(body));
  } catch (error) {
    return Object(error);
  }
}

function constructorOf(prototype: object): AnyFunction {
  return Object(Reflect.get(prototype, 'constructor'));
}
