// Parts of errors, for their writing: the built-in class, the stack, accessors that Node makes.
// Not here: errors that cannot travel whole (error.ts), the classes of Node's errors (node-errors.ts).

import { descriptorOf, type OwnDescriptor, ownOf } from '../../lib/index.js';
import { propertyFlags, special } from '../protocol.js';
import { errorNames } from '../values/error-names.js';
import { isSystemError } from '../values/node-errors.js';
import { isPlain } from '../values/plain.js';
import { twinHere } from '../values/realms.js';
import { builtinPrototype } from './leaves.js';

/** The prototypes of the built-in classes of errors. */
export function errorPrototypes(): Set<unknown> {
  return new Set([...errorNames].map(builtinPrototype));
}

/** The name of the built-in class that `value` extends. */
export function errorBase(value: Error): string {
  for (
    let at: unknown = value;
    typeof at === 'object' && at !== null;
    at = Object.getPrototypeOf(at)
  ) {
    const here = twinHere(at) ?? at;
    for (const name of errorNames) if (builtinPrototype(name) === here) return name;
  }
  return 'Error';
}

const getStack = descriptorOf(new Error(), 'stack')?.get;

/** The text that is its stack; `undefined`: it has none, or another value. */
export function stackOf(value: Error): string | undefined {
  const own = descriptorOf(value, 'stack');
  if (own === undefined || own.enumerable === true) return undefined;
  let stack: unknown;
  try {
    stack = value.stack;
  } catch {
    return ''; // a user's Error.prepareStackTrace threw
  }
  if (typeof stack === 'string') return stack;
  // The result of a user's Error.prepareStackTrace: its frames are objects of this process.
  return isPlain(stack) ? undefined : Error.prototype.toString.call(value);
}

/**
 * True: Node's EventEmitter left a function under `key` that adds to a printed error where it was emitted.
 */
export function isEnhancer(key: string | symbol): boolean {
  return typeof key === 'symbol' && key.description?.startsWith('kEnhanceStack') === true;
}

/** The stack that `Error.captureStackTrace` put on any object is an accessor since Node 21. */
export function propertyOf(value: object, key: string | symbol): OwnDescriptor | undefined {
  const descriptor = descriptorOf(value, key);
  if (key !== 'stack' || descriptor?.get === undefined || descriptor.get !== getStack) {
    return descriptor;
  }
  const { enumerable = false, configurable = false } = descriptor;
  return ownOf({ value: Reflect.get(value, key), writable: true, enumerable, configurable });
}

/** The part of a graph that `addInfoAccessor` needs. */
interface Writer {
  readonly properties: unknown[];
  cell(...values: readonly unknown[]): unknown[];
  put(container: object, key: string | number, index: number): void;
  add(value: unknown, entry: unknown[]): number;
}

/** Writes an accessor of an error of Node for a part of its `info`; false: `key` is none. */
export function addInfoAccessor(
  graph: Writer,
  index: number,
  value: Error,
  key: string | symbol,
): boolean {
  if (typeof key !== 'string' || !isSystemError(value)) return false;
  const own = descriptorOf(value, key);
  const shown: unknown = Reflect.get(value, 'info');
  if (own?.get === undefined || !Object.hasOwn(Object(shown), key)) return false;
  const info = graph.cell(shown);
  const cell: unknown[] = [0, 0];
  for (const [at, half] of [own.get, own.set].entries()) {
    if (half !== undefined) {
      graph.put(cell, at, graph.add(half, [special.infoAccessor, at, key, info]));
    }
  }
  const flags =
    propertyFlags.accessor |
    (own.enumerable === true ? propertyFlags.enumerable : 0) |
    (own.configurable === true ? propertyFlags.configurable : 0);
  graph.properties.push(index, key, flags, cell, 0);
  return true;
}
