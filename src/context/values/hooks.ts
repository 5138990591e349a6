// Two methods by which a class defines how its instances travel. An instance method
// `[Symbol.for('manycore.send')]()` returns data that can travel. A static
// `[Symbol.for('manycore.receive')](data)` makes an instance of it on the other side. For classes with
// private fields, and for handles of this process.

import { CodedError } from '../../errors.js';
import { messageOf } from '../../lib/index.js';
import type { AnyFunction } from '../types.js';
import { nameOfClass, type Path, transferError } from './refuse.js';

export const send: unique symbol = Symbol.for('manycore.send');
export const receive: unique symbol = Symbol.for('manycore.receive');

/** The instance method of a class that has both; `undefined` for every other object. */
export function sendHook(value: object): AnyFunction | undefined {
  if (!(send in value)) return undefined;
  const hook: unknown = Reflect.get(value, send);
  return typeof hook === 'function' ? hook : undefined;
}

export function isReceivedClass(value: unknown): value is AnyFunction {
  return typeof value === 'function' && typeof Reflect.get(value, receive) === 'function';
}

let isInCall = false;
/** The data that each value returned in this call. */
let dataInCall: Map<object, unknown> | undefined;

/**
 * Begins a call, in which the method of each value is called once, even if the value is written several
 * times. Pass its result to `endCall`, which must follow in the same turn.
 */
export function beginCall(): boolean {
  const isNested = isInCall;
  isInCall = true;
  return isNested;
}

export function endCall(isNested: boolean): void {
  isInCall = isNested;
  if (!isNested) dataInCall = undefined;
}

/** The data that the send method of `value`, which is at `path`, returns. Throws `TRANSFER_UNSUPPORTED`. */
export function dataBy(hook: AnyFunction, value: object, path: Path): unknown {
  if (dataInCall?.has(value) === true) return dataInCall.get(value);
  try {
    const data: unknown = Reflect.apply(hook, value, []);
    if (isInCall) {
      dataInCall ??= new Map();
      dataInCall.set(value, data);
    }
    return data;
  } catch (cause) {
    const why =
      `[Symbol.for('manycore.send')]() of ${nameOfClass(value)} threw: ${messageOf(cause)}; mend ` +
      'that method, or make the instance inside the function';
    throw transferError('TRANSFER_UNSUPPORTED', path, why, { cause });
  }
}

/**
 * Makes an instance on this side; `where`: its path on the other. Throws `TRANSFER_UNSUPPORTED`, and errors of this
 * package with their own codes: their texts have the way out.
 */
export function receiveBy(constructor: AnyFunction, data: unknown, where: string): unknown {
  const hook: unknown = Reflect.get(constructor, receive);
  if (typeof hook !== 'function') return undefined;
  try {
    return Reflect.apply(hook, constructor, [data]);
  } catch (cause) {
    if (cause instanceof CodedError) {
      throw new CodedError(cause.code, `${cause.message}\n  path: ${where}`, { cause });
    }
    throw new CodedError(
      'TRANSFER_UNSUPPORTED',
      `an instance of ${constructor.name || 'a class'} cannot travel: its static ` +
        `[Symbol.for('manycore.receive')]() threw: ${messageOf(cause)}; mend that method, or what ` +
        `[Symbol.for('manycore.send')]() returns\n  path: ${where}`,
      { cause },
    );
  }
}
