// Checks of options and arguments: each returns the value, or throws an `OPTION_INVALID` that names the
// option, what came and what it must be.

import { isPromise, isTypedArray } from 'node:util/types';
import { CodedError } from '../../errors.js';
import { jsonOf } from '../node/json.js';
import { hintFor } from './did-you-mean.js';

/** The error for an option that has a wrong value. */
export function invalid(name: string, value: unknown, wanted: string): CodedError {
  return new CodedError('OPTION_INVALID', `${name} is ${inWords(value)}: it must be ${wanted}`);
}

/** An unknown value as messages show it: a string in quotes, an object by its kind. */
export function inWords(value: unknown): string {
  if (typeof value === 'string') return jsonOf(value);
  if (typeof value === 'function') return 'a function';
  if (Array.isArray(value)) return 'an array';
  if (isTypedArray(value)) return `${value[Symbol.toStringTag]} of length ${value.length}`;
  if (isPromise(value)) return 'a promise';
  return typeof value === 'object' && value !== null ? 'an object' : String(value);
}

/** The error for something else than the function `name` that should run. */
export function notFunction(name: string, value: unknown, wanted = 'a function'): CodedError {
  return new CodedError('TASK_NOT_FUNCTION', `${name} is ${inWords(value)}: it must be ${wanted}`);
}

/**
 * Returns what `value` has itself, and nothing that it inherits: read options from that only. Whoever gets
 * to change `Object.prototype` could otherwise set what nobody has given, as flags and variables of workers.
 */
export function ownOptions<T extends object>(
  what: string,
  value: T,
  names: ReadonlySet<string>,
): T {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new CodedError('OPTION_INVALID', `${what} must be an object, not ${inWords(value)}`);
  }
  checkNames(what, value, names);
  return ownOf(value);
}

/** As `ownOptions`, where any name may be. */
export function ownOf<T extends object>(value: T): T {
  return { __proto__: null, ...value };
}

function checkNames(what: string, value: object, names: ReadonlySet<string>): void {
  for (const name of Object.keys(value)) {
    if (names.has(name)) continue;
    throw new CodedError(
      'OPTION_INVALID',
      `there is no "${name}" in ${what}: there may be ${[...names].join(', ')}${hintFor(name, names)}`,
    );
  }
}

export function oneOf<const T extends string>(name: string, value: T, allowed: readonly T[]): T {
  if (!allowed.includes(value)) {
    throw invalid(name, value, allowed.map((entry) => jsonOf(entry)).join(' or '));
  }
  return value;
}

export function boolean(name: string, value: boolean): boolean {
  if (typeof value !== 'boolean') throw invalid(name, value, 'true or false');
  return value;
}

export function number(name: string, value: number, least: number): number {
  if (typeof value !== 'number' || Number.isNaN(value) || value < least) {
    throw invalid(name, value, least === -Infinity ? 'a number' : `a number from ${least} on`);
  }
  return value;
}

export function integer(name: string, value: number, min: number, max: number): number {
  if (!Number.isInteger(value) || value < min || value > max) {
    throw invalid(name, value, `an integer from ${min} to ${max}`);
  }
  return value;
}

/** Not empty. */
export function string(name: string, value: unknown, wanted: string): string {
  if (typeof value === 'string' && value !== '') return value;
  throw invalid(name, value, wanted);
}

export function strings(name: string, value: readonly string[]): readonly string[] {
  if (!Array.isArray(value) || value.some((entry) => typeof entry !== 'string')) {
    throw invalid(name, value, 'an array of strings');
  }
  return [...value];
}

/** `undefined` is fine: the option is left out. */
export function abortSignal(given: unknown): AbortSignal | undefined {
  if (given === undefined || given instanceof AbortSignal) return given;
  const wayOut = given instanceof AbortController ? ': pass controller.signal' : '';
  throw invalid('signal', given, `an AbortSignal${wayOut}`);
}

/** For `with`, which takes options and returns what makes the call. `call`: how it is written. */
export function optionsAlone(call: string, more: readonly unknown[]): void {
  if (more.length === 0) return;
  const [name = ''] = call.split('(');
  throw new CodedError('OPTION_INVALID', `${name}() takes options alone: ${call}`);
}

export function checkFunction<T>(name: string, value: T): T {
  if (typeof value !== 'function') throw invalid(name, value, 'a function');
  return value;
}
