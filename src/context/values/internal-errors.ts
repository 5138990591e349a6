// Parts of Node's errors and listeners that no module exports. Each is read once, at first use, from an error
// that is thrown for it, or from a listener.
// Not here: classes that exist for one code only (node-errors.ts).

import { EventEmitter, on } from 'node:events';
import { getPriority } from 'node:os';
import { functionName, ownValue, withoutStack } from '../../lib/index.js';
import { sendingHalf } from '../late.js';
import type { AnyFunction } from '../types.js';

/** No process can have this number: it is larger than the system allows. */
const noProcess = 2 ** 30;

export const internalErrors = {
  /** The class of the errors of aborted calls of Node. */
  AbortError: once((): AnyFunction => {
    const thrown = thrownBy(() => on(new EventEmitter(), '', { signal: AbortSignal.abort() }));
    return constructorOf(Object.getPrototypeOf(thrown));
  }),
  /** The base of errors that have `info` of a system call. */
  SystemError: once((): AnyFunction => {
    const thrown = thrownBy(() => getPriority(noProcess));
    return constructorOf(Object.getPrototypeOf(Object.getPrototypeOf(thrown)));
  }),
  onceWrapper: once(readOnceWrapper),
  /** The key of a count on lists of listeners, since Node 24. */
  kEmitting: once((): symbol => {
    const emitter = new EventEmitter().on('', () => {}).on('', () => {});
    const list = Object(Reflect.get(Object(Reflect.get(emitter, '_events')), ''));
    const own = Object.getOwnPropertySymbols(list);
    return own.find(({ description }) => description === emittingName) ?? Symbol(emittingName);
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
const emittingName = 'events.emitting';

/** The state of a listener that is called once. */
interface OnceState {
  fired: boolean;
  readonly target: EventEmitter;
  readonly type: string;
  readonly wrapFn: () => void;
  readonly listener: AnyFunction;
}

/** The function of Node behind `emitter.once()`, or one like it where this process may not inspect itself. */
function readOnceWrapper(): AnyFunction {
  const { canInspect, inspectSelf } = sendingHalf();
  const [listener] = new EventEmitter().once('', () => {}).rawListeners('');
  const found =
    listener && canInspect() ? inspectSelf().capture(listener).bound?.target : undefined;
  return typeof found === 'function' ? found : onceWrapper;
}

/** The state of `fn`, a listener that is called once as Node 24 makes it; `undefined`: it is none. */
export function onceState(fn: AnyFunction): object | undefined {
  if (functionName(fn) !== 'wrapper') return undefined;
  const { canInspect, inspectSelf } = sendingHalf();
  if (!canInspect()) return undefined;
  const names = ['fired', 'target', 'type', 'listener'];
  const { scopes } = inspectSelf().capture(fn);
  const scope = scopes.find((each) => names.every((name) => Object.hasOwn(each, name)));
  if (scope === undefined) return undefined;
  return { ...Object.fromEntries(names.map((name) => [name, ownValue(scope, name)])), wrapFn: fn };
}

function onceWrapper(this: OnceState, ...args: unknown[]): unknown {
  if (this.fired) return undefined;
  this.target.removeListener(this.type, this.wrapFn);
  this.fired = true;
  return Reflect.apply(this.listener, this.target, args);
}

/** The part with the name `name`; `undefined`: none has it. */
export function internalError(name: string): unknown {
  const read: unknown = Object.hasOwn(internalErrors, name)
    ? Reflect.get(internalErrors, name)
    : undefined;
  return typeof read === 'function' ? read() : undefined;
}

/** The name of `value` here, a symbol of Node. */
export function nameOfMark(value: symbol): 'kIsNodeError' | 'kEmitting' | undefined {
  const { description } = value;
  if (description === markName && value === internalErrors.kIsNodeError()) return 'kIsNodeError';
  const isEmitting = description === emittingName && value === internalErrors.kEmitting();
  return isEmitting ? 'kEmitting' : undefined;
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
