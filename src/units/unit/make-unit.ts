// Makes instances in a loop: of a module that it loads, or of a unit that came as a value.

import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { CodedError } from '../../errors.js';
import { messageOf } from '../../lib/index.js';
import { checkUnit, unitOf } from '../options.js';
import type { UnitSource } from '../protocol.js';
import type { UnitObject } from '../types.js';
import type { MakeUnit } from './instance.js';

/** `copy` makes an object of its own for each instance. Rejects with `UNIT_INVALID`. */
export async function unitMaker(
  source: UnitSource,
  copy: (value: unknown) => unknown,
): Promise<MakeUnit> {
  if (source.kind === 'value') return makerOf(source.value, copy);
  const path = fileURLToPath(source.url);
  const unit = unitOf(await load(source.url, path));
  checkUnit(unit, `the export of ${path}`);
  return makerOf(unit, (value) => value); // an exported object is one for the whole loop
}

async function load(url: string, path: string): Promise<unknown> {
  try {
    return path.endsWith('.cjs') ? createRequire(url)(path) : await import(url);
  } catch (cause) {
    throw new CodedError('UNIT_INVALID', `${path} cannot be loaded: ${messageOf(cause)}`, {
      cause,
    });
  }
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
