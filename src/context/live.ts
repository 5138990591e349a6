// Values that threads of one process can share or hand over, though they have no bytes: those that
// `postMessage` clones, and those that it transfers. Only direct instances: a user's subclass holds more.

import { isCryptoKey, isSharedArrayBuffer } from 'node:util/types';
import type { Transferable } from 'node:worker_threads';

type How = 'clone' | 'transfer';

const transferSymbol = 'messaging_transfer_symbol';

let kinds: Map<unknown, How> | undefined;

function prototypeAt(...path: readonly string[]): unknown {
  let at: unknown = globalThis;
  for (const name of [...path, 'prototype']) {
    if ((typeof at !== 'object' && typeof at !== 'function') || at === null) return undefined;
    at = Reflect.get(at, name);
  }
  return at;
}

function makeKinds(): Map<unknown, How> {
  const made = new Map<unknown, How>();
  made.set(prototypeAt('Blob'), 'clone');
  made.set(prototypeAt('WebAssembly', 'Module'), 'clone');
  // Before Node 24 a clone is a Blob, without its name.
  if (structuredClone(new File([], '')) instanceof File) made.set(File.prototype, 'clone');
  for (const name of ['MessagePort', 'ReadableStream', 'WritableStream', 'TransformStream']) {
    made.set(prototypeAt(name), 'transfer');
  }
  made.delete(undefined);
  return made;
}

/** How `postMessage` passes `value` on: copied by reference, given away, or (`undefined`) not at all. */
function howLive(value: object): How | undefined {
  if (isSharedArrayBuffer(ArrayBuffer.isView(value) ? value.buffer : value)) return 'clone';
  if (isCryptoKey(value)) return 'clone'; // by no prototype: some versions have one of their own
  const prototype: object | null = Object.getPrototypeOf(value);
  kinds ??= makeKinds();
  const how = kinds.get(prototype);
  if (how !== undefined || prototype === null) return how;
  if (prototype === prototypeAt('WebAssembly', 'Memory')) {
    return isSharedArrayBuffer(Reflect.get(value, 'buffer')) ? 'clone' : undefined;
  }
  const isFile =
    prototype.constructor?.name === 'FileHandle' &&
    Object.getOwnPropertySymbols(prototype).some((key) => key.description === transferSymbol);
  return isFile ? 'transfer' : undefined;
}

/** True: all threads of this process can have it. */
export function isCloneable(value: object): boolean {
  return howLive(value) === 'clone';
}

/** True: another thread can have it instead of this one. Not memory: that can be copied as well. */
export function isHandle(value: object): value is Exclude<Transferable, ArrayBuffer> {
  return howLive(value) === 'transfer' && Reflect.get(value, 'locked') !== true;
}
