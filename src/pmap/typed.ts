// Typed arrays as input and output of maps: recognised from any realm, and allocated in shared memory,
// where all workers write their parts of one result.

import { isTypedArray as isTypedArrayOfNode } from 'node:util/types';
import { hasCode } from '../errors.js';
import { type Cells, isSharedMemory, newArray, shared } from '../worker/index.js';
import type { TypedArray } from './options.js';

export function isTypedArray(value: unknown): value is TypedArray {
  return isTypedArrayOfNode(value);
}

/** Returns the name of its class, for `Buffer` that of the class below: workers make new arrays by it. */
export function classNameOf(array: TypedArray): string {
  return array[Symbol.toStringTag];
}

/** True: workers over shared memory see it in place. */
export function isShared(array: TypedArray): boolean {
  return isSharedMemory(array.buffer);
}

/** Returns a new array like `model` with these items, or with this number of zeros. */
export function arrayLike(model: TypedArray, items: readonly unknown[] | number): TypedArray {
  const made: Cells = newArray(
    classNameOf(model),
    typeof items === 'number' ? items : items.length,
  );
  if (typeof items !== 'number') for (const [at, item] of items.entries()) made[at] = item;
  if (!isTypedArray(made)) throw new TypeError(`${classNameOf(model)} is no typed array`);
  return Buffer.isBuffer(model) ? Buffer.from(made.buffer) : made;
}

/** Returns a copy in separate memory. */
export function copyOf(array: TypedArray): TypedArray {
  const copy = arrayLike(array, array.length);
  bytesOf(copy).set(bytesOf(array));
  return copy;
}

function bytesOf({ buffer, byteOffset, byteLength }: TypedArray): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

/** Returns zeros like `model`, as many: in shared memory, unless there is none or none left. */
export function sharedLike(model: TypedArray): TypedArray {
  const name = classNameOf(model);
  try {
    const buffer = shared(model.byteLength);
    if (Buffer.isBuffer(model)) return buffer;
    const made = newArray(name, buffer.buffer);
    if (isTypedArray(made)) return made;
  } catch (error) {
    if (!hasCode(error, 'SHARED_MEMORY_FULL')) throw error;
  }
  return arrayLike(model, model.length);
}
