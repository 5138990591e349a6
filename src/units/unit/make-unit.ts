// Makes instances in a loop: of a module (unit-module.ts), or of a unit that came as a value.

import { fileURLToPath } from 'node:url';
import { checkUnit, unitOf } from '../options.js';
import type { UnitSource } from '../protocol.js';
import type { UnitObject } from '../types.js';
import type { MakeUnit } from './instance.js';
import { loadUnit } from './unit-module.js';

/** The code of instances, with its version; `undefined`: the unit came as a value. */
export interface UnitCode {
  readonly make: MakeUnit;
  readonly version: string | undefined;
}

/**
 * `copy` makes an object of its own for each instance. `isStrict`: a module must have the version of `source`.
 * Rejects with `UNIT_INVALID`, `UNIT_VERSION_CHANGED`.
 */
export async function unitMaker(
  source: UnitSource,
  isStrict: boolean,
  copy: (value: unknown) => unknown,
): Promise<UnitCode> {
  if (source.kind === 'value') return { make: makerOf(source.value, copy), version: undefined };
  const { exports, version } = await loadUnit(source.url, source.version, isStrict);
  const unit = unitOf(exports);
  checkUnit(unit, `the export of ${fileURLToPath(source.url)}`);
  return { make: makerOf(unit, (value) => value), version }; // an exported object is one for the whole loop
}

function makerOf(unit: unknown, copy: (value: unknown) => unknown): MakeUnit {
  if (isClass(unit)) return () => new unit();
  if (isFunction(unit)) return async (context) => fromFunction(await unit(context));
  return () => objectOf(copy(unit));
}

/**
 * Converts the return value of a function that was called as `start`: nothing, `stop`, or an object with
 * methods.
 */
function fromFunction(returned: unknown): UnitObject {
  if (isFunction(returned)) return { stop: () => returned() };
  if (typeof returned !== 'object' || returned === null) return {};
  const { stop, health, save, restore } = objectOf(returned);
  return {
    ...(stop && { stop: () => Reflect.apply(stop, returned, []) }),
    ...(health && { health: () => Reflect.apply(health, returned, []) }),
    ...(save && { save: () => Reflect.apply(save, returned, []) }),
    ...(restore && { restore: (state) => Reflect.apply(restore, returned, [state]) }),
  };
}

function objectOf(value: unknown): UnitObject {
  return Object(value);
}

type AnyFunction = (...args: unknown[]) => unknown;

function isFunction(value: unknown): value is AnyFunction {
  return typeof value === 'function';
}

/** Also true for a class that was compiled to a function with a prototype. */
function isClass(value: unknown): value is new () => UnitObject {
  if (typeof value !== 'function') return false;
  if (/^class\b/.test(Function.prototype.toString.call(value))) return true;
  const prototype: unknown = value.prototype;
  return typeof prototype === 'object' && prototype !== null && 'start' in prototype;
}
