// Registry of shared memory by copy of manycore. A program may load two copies, of two versions or as two
// installs, and an arena recognises its own memory alone. Memory of the other copy would be copied silently, and
// writes of workers would be lost. All copies in a thread register here.

import { defineOwn } from './node/descriptors.js';

interface Registry {
  readonly makers: Set<object>;
  readonly makerOf: WeakMap<ArrayBufferLike, object>;
}

const name = Symbol.for('manycore.sharedMemory');
/** Stands for this copy. */
const ownCopy = {};
let known: Registry | undefined;

function isRegistry(value: unknown): value is Registry {
  return typeof value === 'object' && value !== null && 'makers' in value && 'makerOf' in value;
}

function registry(): Registry {
  if (known !== undefined) return known;
  const found: unknown = Reflect.get(globalThis, name);
  known = isRegistry(found) ? found : { makers: new Set(), makerOf: new WeakMap() };
  if (known !== found) defineOwn(globalThis, name, { value: known });
  return known;
}

/** Says that `buffer` is shared memory of this copy. */
export function rememberShared(buffer: ArrayBufferLike): void {
  const { makers, makerOf } = registry();
  makers.add(ownCopy);
  makerOf.set(buffer, ownCopy);
}

/** True: `buffer` is shared memory that only another copy can pass on. */
export function isSharedByOtherCopy(buffer: ArrayBufferLike): boolean {
  const { makers, makerOf } = registry();
  if (makers.size === 0 || (makers.size === 1 && makers.has(ownCopy))) return false;
  const maker = makerOf.get(buffer);
  return maker !== undefined && maker !== ownCopy;
}
