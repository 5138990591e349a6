// Listeners of an emitter, run in the pool: an event whose listener computes goes to an idle worker, else
// it runs here as ever (event callback parallelization, as described for Node on embedded devices).
// `emit` of this one emitter is replaced until it is disposed; listeners may come and go meanwhile.

import type { EventEmitter } from 'node:events';
import { CodedError } from '../../errors.js';
import { invalid } from '../../lib/index.js';
import { type RunOptions, run } from './default.js';

/**
 * Runs the listeners of `names` (default: all events but `error`) in the pool; `whenBusy` is `inline` by
 * default. Errors of a listener are emitted as `error`. Its `this` does not travel. Dispose to undo. Throws
 * `OPTION_INVALID`.
 */
export function parallelEvents(
  emitter: EventEmitter,
  names?: string | symbol | readonly (string | symbol)[],
  options: RunOptions = {},
): Disposable {
  if (typeof emitter?.emit !== 'function' || typeof emitter.rawListeners !== 'function') {
    throw new CodedError('OPTION_INVALID', 'parallelEvents needs an EventEmitter first');
  }
  const call = run.with({ whenBusy: 'inline', ...options });
  const chosen = names === undefined ? undefined : namesOf(names);
  const original = emitter.emit;
  const hadOwn = Object.hasOwn(emitter, 'emit');

  function emit(this: EventEmitter, name: string | symbol, ...args: unknown[]): boolean {
    const isOurs = chosen === undefined ? name !== 'error' : chosen.has(name);
    if (!isOurs) return Reflect.apply(original, emitter, [name, ...args]);
    const listeners = emitter.rawListeners(name);
    for (const listener of listeners) {
      void call(plainListener(emitter, name, listener), ...args).catch((error: unknown) => {
        Reflect.apply(original, emitter, ['error', error]);
      });
    }
    return listeners.length > 0;
  }
  emitter.emit = emit;
  return {
    [Symbol.dispose]() {
      if (emitter.emit !== emit) return;
      if (hadOwn) emitter.emit = original;
      else Reflect.deleteProperty(emitter, 'emit');
    },
  };
}

function namesOf(
  given: string | symbol | readonly (string | symbol)[],
): ReadonlySet<string | symbol> {
  const names = typeof given === 'string' || typeof given === 'symbol' ? [given] : given;
  const isName = (name: unknown): boolean => typeof name === 'string' || typeof name === 'symbol';
  if (!Array.isArray(names) || !names.every(isName)) {
    throw invalid('names', given, 'the name of an event or an array of them; options come third');
  }
  return new Set(names);
}

type Listener = (...args: unknown[]) => unknown;

/** Returns the listener itself; one that was added by `once` is removed first. */
function plainListener(emitter: EventEmitter, name: string | symbol, raw: unknown): Listener {
  const wrapped = typeof raw === 'function' && 'listener' in raw ? raw.listener : undefined;
  if (isListener(wrapped)) {
    emitter.removeListener(name, wrapped);
    return wrapped;
  }
  return isListener(raw) ? raw : () => {};
}

function isListener(value: unknown): value is Listener {
  return typeof value === 'function';
}
