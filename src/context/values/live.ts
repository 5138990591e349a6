// Values without bytes that threads of one process can share or hand over: those that `postMessage` clones,
// and those that it transfers. Only direct instances: a user's subclass holds more.

import { isCryptoKey, isSharedArrayBuffer } from 'node:util/types';
import type { Transferable } from 'node:worker_threads';
import { ownValue } from '../../lib/index.js';

type How = 'clone' | 'transfer';

const transferSymbol = 'messaging_transfer_symbol';

/** By the name of the class. */
const kinds: ReadonlyMap<string, readonly [How, ...path: string[]]> = new Map([
  ['Blob', ['clone', 'Blob']],
  ['File', ['clone', 'File']],
  ['Module', ['clone', 'WebAssembly', 'Module']],
  ['MessagePort', ['transfer', 'MessagePort']],
  ['ReadableStream', ['transfer', 'ReadableStream']],
  ['WritableStream', ['transfer', 'WritableStream']],
  ['TransformStream', ['transfer', 'TransformStream']],
]);

function prototypeAt(...path: readonly string[]): unknown {
  let at: unknown = globalThis;
  for (const name of [...path, 'prototype']) {
    if ((typeof at !== 'object' && typeof at !== 'function') || at === null) return undefined;
    at = Reflect.get(at, name);
  }
  return at;
}

let isFileCloned: boolean | undefined;

/** Before Node 24 a clone is a Blob, without its name. */
function isFileCloneable(): boolean {
  isFileCloned ??= structuredClone(new File([], '')) instanceof File;
  return isFileCloned;
}

/** By the class alone. A global is read only for a class of its name: the first read loads its module. */
function kindOf(prototype: object): How | undefined {
  const owner = ownValue(prototype, 'constructor');
  const kind = typeof owner === 'function' ? kinds.get(owner.name) : undefined;
  if (kind === undefined) return undefined;
  const [how, ...path] = kind;
  if (prototypeAt(...path) !== prototype) return undefined;
  return path[0] === 'File' && !isFileCloneable() ? undefined : how;
}

/**
 * The way in which `postMessage` passes `value` on: copied by reference, given away, or (`undefined`) not at
 * all.
 */
function howLive(value: object): How | undefined {
  if (isSharedArrayBuffer(ArrayBuffer.isView(value) ? value.buffer : value)) return 'clone';
  if (isCryptoKey(value)) return 'clone'; // by no prototype: some versions have one of their own
  const prototype: object | null = Object.getPrototypeOf(value);
  if (prototype === null) return undefined;
  const how = kindOf(prototype);
  if (how !== undefined) return how;
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

/** True: another thread can have it instead of this one. Memory is no handle: it can be copied as well. */
export function isHandle(value: object): value is Exclude<Transferable, ArrayBuffer> {
  return howLive(value) === 'transfer' && Reflect.get(value, 'locked') !== true;
}
